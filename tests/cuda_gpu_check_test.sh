#!/usr/bin/env bash
# cuda_gpu_check_test.sh BUILD MAKE_CONV_NET FAKES: scripts/gpu-check with a device, the fakes' (as cuda_cli_test.sh). A script stands for
# compute-sanitizer, which watches a real driver; times are not compared.
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
  expect 0 'Nothing was found wrong' "${check[@]}" --seconds 42 --parts $part --output "$folder/results.md"
done
results=$(cat "$folder/results.md")
reported() { grep -Eq "$1" <<<"$results" || fail "the results do not report /$1/: $results"; }
reported '^    cuda: device: emulated device, sm_90'
reported '^times, streams, replays and branches: [1-9][0-9]* of 11, .* 0 wrong'
reported '^\| net \| [0-9]+ \| [0-9.]+e-[0-9]+ \| [0-9.]+e-[0-9]+ \| [0-9]+ \|'

# Libraries, what they compile, and tensor cores come first.
[ "$(grep -oE '^(libraries|compiled|tensor_cores|tiled|corrections|streams|operators), [0-9]+ s:' "$folder/results.md" | cut -d, -f1 | tr '\n' ' ')" = \
  "libraries compiled tensor_cores tiled corrections streams operators " ] || fail "families are not there, or in another order: $results"

# A part that is skipped was not found to be right.
expect 0 '^Skipped: sanitizer\.$' "${check[@]}" --seconds 30 --parts sanitizer --output "$folder/skipped.md"

# The sanitizer's part, in a rehearsal: a check that runs cases is good, one that runs none is wrong.
mkdir "$folder/tools"
printf '#!/bin/bash\nwhile [[ $1 == --* ]]; do shift 2; done\nexec "$@"\n' >"$folder/tools/compute-sanitizer"
chmod +x "$folder/tools/compute-sanitizer"
rehearse=(env -u LD_LIBRARY_PATH -u MENDEL_CUDA_PATH PATH="$folder/tools:$PATH" "${check[@]}" --seconds 24 --rehearse --parts sanitizer)
expect 0 'Nothing was found wrong' "${rehearse[@]}" --output "$folder/rehearsal.md"
[ "$(grep -cE '^(memcheck|racecheck), (libraries|tiled|tensor_cores|corrections|operators):$' "$folder/rehearsal.md")" = 6 ] || fail "not all checks ran"
grep -q '^Rehearsal on fake libraries: no GPU was there' "$folder/rehearsal.md" || fail "a rehearsal does not say so"
expect 2 'is no rehearsal' "${rehearse[@]}" --output "$folder/results.md"
printf '#!/bin/bash\necho ERROR SUMMARY: 0 errors\n' >"$folder/tools/compute-sanitizer"
expect 1 'WRONG: sanitizer: memcheck of tiled: no case was run' "${rehearse[@]}" --output "$folder/rehearsal.md"

# A run takes up the state of another one, which is a file without plans.
expect 0 'Nothing was found wrong' "${check[@]}" --parts models --keep "$folder/first" --output "$folder/state"
[ "$(ls "$folder/state")" = "$(cd "$folder/state" && ls gpu-*.md state.tar.gz)" ] || fail "another file than results and state"
tar tzf "$folder/state/state.tar.gz" | grep -q '\.plan$' && fail "the state has a plan"
expect 0 '\| net \| kept \|' "${check[@]}" --parts models --keep "$folder/second" --resume "$folder/state/state.tar.gz" --output "$folder/again.md"
expect 2 'is no file' "${check[@]}" --resume "$folder/none.tar.gz"

# A device that fails is wrong, one that is not there is no failure.
expect 1 'exit code 5: .*out of device memory' env MENDEL_FAKE_MEMORY=1000 "${check[@]}" --keep "$folder/none" --parts models --output "$folder/failed.md"
expect 77 'SKIP: no GPU for models: .*cuInit' env MENDEL_FAKE_FAILURE=Init:1:100 "${check[@]}" --parts models
((failures == 0)) && echo "cuda_gpu_check_test: all good"
exit $((failures > 0))
