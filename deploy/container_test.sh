#!/bin/bash
# container_test.sh BUILD_FOLDER: makes the image's root file system and runs it as the container would be run: read-only root, an
# ordinary user, no capabilities, tini, /data and /tmp to write to; then health, a job by the command's client, SIGTERM.
#
# The final stage of the Containerfile is built by buildah with BUILD_FOLDER's install tree in place of the first stage (which is what
# scripts/build does). Without buildah the same steps are replayed on a debootstrap root. Either root is run under bubblewrap. Needs root, debootstrap, a
# Debian mirror and bubblewrap; SKIP says what is missing. MENDEL_BASE_ROOT: an unpacked Debian 12 to start from.
set -u
build=$(cd "$1" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
skip() { echo "SKIP: $1"; exit 77; }
fail() { echo "FAIL: $1"; exit 1; }
[ "$(id -u)" -eq 0 ] || skip "making a root file system needs root"
command -v bwrap >/dev/null || skip "bubblewrap is not installed"
work=$(mktemp -d /tmp/mendel-container.XXXXXX)
container=""
server=""
cleanup() {
  [ -n "$server" ] && kill -KILL "$server" 2>/dev/null
  [ -n "$container" ] && "${buildah[@]}" rm "$container" >/dev/null 2>&1
  rm -rf --one-file-system "$work"
}
trap cleanup EXIT

base=${MENDEL_BASE_ROOT:-$work/base}
if [ ! -d "$base/usr" ]; then
  command -v debootstrap >/dev/null || skip "debootstrap is not installed"
  debootstrap --variant=minbase bookworm "$base" >"$work/debootstrap.log" 2>&1 || skip "debootstrap: $(tail -1 "$work/debootstrap.log")"
  # Debian's slim images lack these.
  rm -rf "$base"/var/cache/apt/* "$base"/var/lib/apt/lists/* "$base"/usr/share/{doc,info,locale,man}/*
fi
DESTDIR=$work/first/stage cmake --install "$build" --strip --prefix /opt/mendel >"$work/install.log" 2>&1 || fail "cmake --install: $(tail -3 "$work/install.log")"

# The root file system: by buildah, or by the same steps.
root=$work/root
buildah=(buildah --root "$work/store" --runroot "$work/run" --storage-driver vfs)
by_buildah() {
  command -v buildah >/dev/null || return 1
  local first
  first=$("${buildah[@]}" from scratch) &&
    "${buildah[@]}" copy -q "$first" "$base" / >/dev/null && "${buildah[@]}" commit -q "$first" localhost/bookworm >/dev/null &&
    "${buildah[@]}" rm "$first" >/dev/null || return 1
  "${buildah[@]}" build --format docker --isolation chroot --layers=false --pull-never --build-arg BASE=localhost/bookworm \
    --build-context build="$work/first" -t localhost/mendel -f "$here/Containerfile" "$here" || return 1
  container=$("${buildah[@]}" from --pull-never localhost/mendel) || return 1
  # A copy: the storage's folders are closed to the user that the image runs as.
  cp -a "$("${buildah[@]}" mount "$container")" "$root"
}
by_steps() {
  rm -rf "$root" && cp -a "$base" "$root" || return 1
  chroot "$root" sh -c 'apt-get update -q && apt-get install -y -q --no-install-recommends bubblewrap ca-certificates tini &&
    groupadd --system --gid 10001 mendel && useradd --system --uid 10001 --gid 10001 --home-dir /data --shell /usr/sbin/nologin mendel &&
    install -d -o mendel -g mendel /data' || return 1
  cp -a "$work/first/stage/opt/mendel" "$root/opt/mendel"
}
if by_buildah >"$work/buildah.log" 2>&1; then
  echo "image: buildah $(buildah --version | cut -d' ' -f3)"
else
  echo "image: the same steps without buildah ($(tail -1 "$work/buildah.log" 2>/dev/null))"
  by_steps >"$work/steps.log" 2>&1 || skip "packages cannot be installed: $(tail -1 "$work/steps.log")"
fi

megabytes() { du -sm --apparent-size "$1" | cut -f1; }
echo "root file system: $(megabytes "$root") MB; of that the base $(megabytes "$base"), /opt/mendel $(megabytes "$root/opt/mendel"); packed: $(tar -C "$root" -c . | gzip -1 | wc -c | awk '{ printf "%d", $1 / 1e6 }') MB"

data=$work/data
shared=$work/tmp
install -d -o 10001 -g 10001 "$data" "$shared"
inside() {
  setpriv --reuid 10001 --regid 10001 --clear-groups --no-new-privs --bounding-set=-all \
    bwrap --ro-bind "$root" / --proc /proc --dev /dev --bind "$data" /data --bind "$shared" /tmp --chdir /data --clearenv \
    --setenv PATH /opt/mendel/bin:/usr/bin:/bin --setenv MENDEL_DATA /data --setenv MENDEL_LISTEN unix:/tmp/mendel.sock "$@"
}
chmod 755 "$work"
inside mendel --version | grep -q '^mendel ' || fail "mendel does not start in the image"
inside touch /opt/mendel/x 2>/dev/null && fail "the root file system can be written to"
[ "$(inside id -u)" = 10001 ] || fail "not an ordinary user"
inside mendel health --server unix:/tmp/mendel.sock 2>/dev/null && fail "healthy without a server"

inside tini -- mendel serve >"$work/server.log" 2>&1 &
server=$!
for _ in $(seq 100); do inside mendel health --server unix:/tmp/mendel.sock >/dev/null 2>&1 && break; sleep 0.2; done
inside mendel health --server unix:/tmp/mendel.sock || fail "the server does not come up: $(tail -5 "$work/server.log")"
cp "$here/../examples/squeezenet1_1.onnx" "$shared/m.onnx" && chmod 644 "$shared/m.onnx"
inside mendel submit /tmp/m.onnx --server unix:/tmp/mendel.sock --budget 3s --threads 1 -o /tmp/m.plan || fail "no plan: $(tail -5 "$work/server.log")"
inside mendel verify /tmp/m.plan --model /tmp/m.onnx || fail "the plan does not verify"
tini=$server
until [ -z "$tini" ] || [ "$(cat "/proc/$tini/comm" 2>/dev/null)" = tini ]; do tini=$(pgrep -P "$tini" | head -1); done
kill -TERM "${tini:-$server}"
for _ in $(seq 300); do kill -0 "$server" 2>/dev/null || break; sleep 0.2; done
kill -0 "$server" 2>/dev/null && fail "SIGTERM does not end it"
server=""
MENDEL_IMAGE_ROOT=$root "$here/readme_test.py" container "$build"
code=$?
[ $code -eq 0 ] || [ $code -eq 77 ] || fail "README.md's commands"
[ $code -eq 0 ] || echo "README.md's commands were NOT run (above: why)"
echo "container: served, optimized, verified and drained on a read-only root as user 10001"
