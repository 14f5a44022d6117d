#!/usr/bin/env bash
# cuda_gpu_check_test.sh BUILD MAKE_CONV_NET FAKES: scripts/gpu-check with a device, the fakes' (as cuda_cli_test.sh). Not here:
# compute-sanitizer, which watches a real driver, and comparisons of times.
set -u
build=$(realpath "$1")
make_conv_net=$(realpath "$2")
fakes=$(realpath "$3")
cd "$(dirname "$0")/.." || exit 1
. tests/cli_expect.sh
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export LD_LIBRARY_PATH=$fakes${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} MENDEL_CUDA_PATH=$fakes
export XDG_CACHE_HOME=$folder/caches MENDEL_LOCK_DIR=$folder MENDEL_CUDA_ALGORITHMS=1
mkdir "$folder/models"
"$make_conv_net" "$folder/models/net.onnx" || exit 1
check=("${MENDEL_PYTHON:-/usr/bin/python3}" scripts/gpu-check --no-build --build "$build" --models "$folder/models" --seconds 30 --grace 600 --keep "$folder/kept")

for part in correctness models; do  # the second one is added to what the first one wrote
  expect 0 'Nothing was found wrong' "${check[@]}" --parts $part --output "$folder/results.md"
done
results=$(cat "$folder/results.md")
reported() { grep -Eq "$1" <<<"$results" || fail "the results do not report /$1/: $results"; }
reported '^    cuda: device: emulated device, sm_90'
reported '^times, streams, replays and branches: ([3-9]|1[01]) of 11, .* 0 wrong'
reported '^\| net \| [0-9]+ \| [0-9.]+e-[0-9]+ \| [0-9.]+e-[0-9]+ \| [0-9]+ \|'

# A device that fails is wrong, one that is not there is no failure.
expect 1 'exit code 5: .*out of device memory' env MENDEL_FAKE_MEMORY=1000 "${check[@]}" --keep "$folder/none" --parts models --output "$folder/failed.md"
expect 77 'SKIP: no GPU for models: .*cuInit' env MENDEL_FAKE_FAILURE=Init:1:100 "${check[@]}" --parts models
((failures == 0)) && echo "cuda_gpu_check_test: all good"
exit $((failures > 0))
