#!/bin/bash
# sanitized_test.sh LIBRARY: stress.py with a provider built with AddressSanitizer, whose runtime is preloaded into Python. Fails at an error, and
# at a leak with a frame of Mendel's. Python and ONNX Runtime leak themselves. Needs a package index; SKIP says so.
set -u
library=$(realpath "$1")
here=$(cd "$(dirname "$0")" && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv" 2>/dev/null || { echo "SKIP: no venv (Debian: python3-venv)"; exit 77; }
"$folder/venv/bin/pip" --disable-pip-version-check -q install onnxruntime onnx numpy >/dev/null 2>&1 || { echo "SKIP: no package index"; exit 77; }
cd "$folder" || exit 1
# The runtimes that the library itself was linked with.
runtimes=$(ldd "${library%/*}/libmendel_provider.so" | awk '$1 ~ /^lib(asan|ubsan|stdc\+\+)\./ { print $3 }' | tr '\n' ':')
[[ $runtimes == *asan* ]] || { echo "$library is not built with AddressSanitizer"; exit 1; }
LD_PRELOAD=$runtimes ASAN_OPTIONS=detect_leaks=1:log_path=$folder/report:fast_unwind_on_malloc=0:malloc_context_size=12 PYTHONMALLOC=malloc \
  UBSAN_OPTIONS=log_path=$folder/report "$folder/venv/bin/python" "$here/stress.py" --library "$library" --growth 1000000 | tee "$folder/said"
cat "$folder"/report.* >"$folder/all" 2>/dev/null
if grep -q 'ERROR: AddressSanitizer\|runtime error' "$folder/all"; then
  cat "$folder/all"
  exit 1
fi
# One paragraph a leak.
awk -v RS= -v ours="mendel|client/onnxruntime/" '/leak of/ { ++leaks } /leak of/ && $0 ~ ours { print; ++found }
  END { printf "%d leaks, %d with a frame of the provider\n", leaks, found; exit found > 0 }' "$folder/all" || exit 1
# The sanitizer's exit code hides that of Python.
tail -1 "$folder/said" | grep -q '^unregistered and registered again three times'
