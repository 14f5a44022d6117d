#!/bin/bash
# transfer_test.sh MENDEL MIB KILLS: a model with MIB MiB of sparse external data goes to a server while its client is killed KILLS times at
# random points (MENDEL_TRANSFER_SEED chooses them). It must resume each time, arrive bit for bit, and never cost the server
# more than 64 MiB of anonymous memory.
set -u
mendel=$1
bytes=$(($2 << 20))
kills=$3
limit_kib=65536
seed=${MENDEL_TRANSFER_SEED:-$RANDOM}
RANDOM=$seed
folder=$(mktemp -d)
server="" client="" sampler=""
stop() { for process in $client $sampler $server; do kill -KILL "$process" 2>/dev/null; wait "$process" 2>/dev/null; done; }
trap 'stop; rm -rf "$folder"' EXIT
cd "$folder" || exit 1
fail() { echo "FAIL: $1"; tail -3 server.log 2>/dev/null; exit 1; }
free=$(($(df --output=avail -B1 . | tail -1) - bytes))
[ $free -gt $((1 << 30)) ] || { echo "SKIP: the disk has no room for $2 MiB"; exit 77; }
# The server accepts blobs but no jobs.
"$mendel" serve --listen "unix:$folder/s" --data "$folder/data" --metrics-listen 127.0.0.1:0 --concurrent-jobs 0 >server.log 2>&1 &
server=$!
export MENDEL_SERVER=unix:$folder/s
for _ in $(seq 600); do "$mendel" health >/dev/null 2>&1 && break; sleep 0.1; done
"$mendel" health >/dev/null || fail "no server"

# One tensor with its bytes in w.bin: holes and some random blocks, so that a byte in the wrong place changes the hash.
python3 - "$bytes" "$seed" <<'PY'
import random, sys
size, seed = int(sys.argv[1]), int(sys.argv[2])
def field(number, payload):
    text, length = bytearray([number << 3 | 2]), len(payload)
    while length > 127:
        text.append(length & 127 | 128)
        length >>= 7
    return bytes(text) + bytes([length]) + payload
tensor = b"\x10\x01" + field(8, b"w") + field(13, field(1, b"location") + field(2, b"w.bin")) + b"\x70\x01"
open("big.onnx", "wb").write(b"\x08\x08" + field(7, field(5, tensor)) + field(8, b"\x10\x11"))
rng = random.Random(seed)
with open("w.bin", "wb") as file:
    file.truncate(size)
    for _ in range(256):
        file.seek(rng.randrange(size - 4096))
        file.write(rng.randbytes(4096))
PY
anonymous() { sed -n 's/^RssAnon:[^0-9]*\([0-9]*\).*/\1/p' "/proc/$server/status"; }
uploaded() { find data/uploads -type f -name "*.$bytes" -printf '%s\n' 2>/dev/null | sort -n | tail -1 | grep . || echo 0; }
metric() { exec 3<>"/dev/tcp/127.0.0.1/$port" && printf 'GET /metrics HTTP/1.0\r\n\r\n' >&3 && sed -n "s/^$1 //p" <&3; exec 3>&-; }
port=$(sed -n 's/.*"event":"metrics","port":\([0-9]*\).*/\1/p' server.log)
before=$(anonymous)
while :; do
  while read -r word kib _; do [ "$word" = RssAnon: ] && echo "$kib" >&4; done <"/proc/$server/status"
  sleep 0.02
done 4>samples 2>/dev/null &
sampler=$!

points=$(for _ in $(seq "$kills"); do echo $((bytes / 32768 * RANDOM)); done | sort -n)
for point in $points; do
  "$mendel" submit big.onnx >client.log 2>&1 &
  client=$!
  until [ "$(uploaded)" -ge "$point" ]; do
    kill -0 "$client" 2>/dev/null || { grep -q '^job' client.log && break 2; fail "the upload: $(cat client.log)"; }
    sleep 0.01
  done
  kill -KILL "$client"
  wait "$client" 2>/dev/null
  echo "killed at byte $point or soon after it: $(uploaded) bytes in place"
done
client=""
"$mendel" submit big.onnx >client.log 2>&1 || fail "the last upload: $(cat client.log)"
kill "$sampler"
wait "$sampler" 2>/dev/null
sampler=""
sent=$(metric 'mendel_transfer_bytes_total{direction="upload"}' | tr -d '\r')
heap=$(metric process_heap_bytes | tr -d '\r')
[ "${heap:-0}" -gt 0 ] || fail "the metric process_heap_bytes is ${heap:-missing}"
peak=$(sort -n samples | tail -1)
want=$(sha256sum <w.bin | cut -d' ' -f1)
got=$(sha256sum <"data/blobs/${want:0:2}/$want" | cut -d' ' -f1)
echo "$2 MiB, $kills kills, seed $seed: SHA-256 ${got:0:16}... of ${want:0:16}...; sent $(((sent - bytes) >> 20)) MiB more than the model has"
echo "anonymous memory of the server, KiB: before $before, at most $peak ($(wc -l <samples) samples), after $(anonymous)"
[ "$got" = "$want" ] || fail "the file arrived as another one"
[ $((peak - before)) -le $limit_kib ] || fail "the transfer cost $((peak - before)) KiB"
# Bytes on their way when a client died may travel again, not more.
[ "$sent" -le $((bytes + (kills + 1) * (32 << 20))) ] || fail "the uploads did not go on where they were"
kill "$server"
wait "$server" || fail "the server did not stop well"
server=""
"$mendel" fsck --data data || fail "fsck"
