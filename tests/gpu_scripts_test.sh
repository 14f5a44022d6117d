#!/usr/bin/env bash
# Scripts that a machine with a GPU runs, tested without one: exit codes and messages, models without weights, and both benchmarks' logic on
# the CPU. usage: gpu_scripts_test.sh BUILD MAKE_VERIFY_PAIRS
set -uo pipefail
build=$(realpath "$1")
pairs=$(realpath "$2")
cd "$(dirname "$0")/.."
. tests/cli_expect.sh
python=${MENDEL_PYTHON:-/usr/bin/python3}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
parts=$build/bench/model_parts
layers=$build/bench/layer_mutants
model=examples/squeezenet1_1.onnx

# Models travel without their weights.
expect 0 '^$' "$parts" strip "$model" "$folder/shell.onnx"
(($(stat -c %s "$folder/shell.onnx") * 50 < $(stat -c %s "$model"))) || fail "the shell is not small"
expect 0 '^$' "$parts" fill "$folder/shell.onnx" "$folder/filled.onnx" 3
expect 0 '^$' "$parts" fill "$folder/shell.onnx" "$folder/again.onnx" 3
expect 0 '^$' "$parts" fill "$folder/shell.onnx" "$folder/other.onnx" 4
cmp -s "$folder/filled.onnx" "$folder/again.onnx" || fail "the same seed gave other weights"
cmp -s "$folder/filled.onnx" "$folder/other.onnx" && fail "another seed gave the same weights"
expect 0 '^$' "$parts" fill "$folder/filled.onnx" "$folder/unchanged.onnx"
cmp -s "$folder/filled.onnx" "$folder/unchanged.onnx" || fail "filling changed a whole model"
expect 1 "tensor '.*'" "$parts" unpack "$folder/shell.onnx" "$folder/shell"
sed 's/weights drawn/weights drown/' "$folder/shell.onnx" >"$folder/damaged.onnx"
expect 1 'neither data nor a recipe' "$parts" fill "$folder/damaged.onnx" "$folder/x.onnx"
expect 1 'is no ONNX model' "$parts" fill tests/gpu_scripts_test.sh "$folder/x.onnx"
expect 1 'cannot open' "$parts" strip "$folder/none.onnx" "$folder/x.onnx"
expect 2 'usage' "$parts" strip "$model"

expect 1 'no convolution is dilated' "$parts" backend "$model" "$folder/x.onnx"

# Layers and their mutants.
one_layer=("$layers" --device cpu --batch 1 --numerics default --seconds 0.5 --layers 1 --samples 0 --rows "$folder/rows" "$folder/filled.onnx")
expect 0 '\| filled \| [0-9]+->[0-9]+ .* \| 1 \| default \| NCHW \| [0-9.]+ ' "${one_layer[@]}"
"${one_layer[@]}" | grep '^| filled' >"$folder/again"
cut -f3 "$folder/rows" | cmp -s - "$folder/again" || fail "finished rows were measured again"
expect 0 '\| sample 1 of .*(MatMul|Add|Concat).* \| 1 \| default \| NCHW \|' \
  "$layers" --device cpu --numerics default --seconds 1 --layers 0 "$folder/filled.onnx"
echo "no row" >"$folder/no_rows"
expect 1 'no_rows, line 1: no row' "$layers" --device cpu --rows "$folder/no_rows" "$folder/filled.onnx"
expect 77 'SKIP: this build has no backend abacus' "$layers" --device abacus "$folder/filled.onnx"
expect 1 'unknown numerics class' "$layers" --numerics odd "$folder/filled.onnx"
expect 2 'usage' "$layers" --batch 0 "$folder/filled.onnx"

# The command line of the script that needs a GPU.
expect 2 'no part dance' "$python" scripts/gpu-check --parts dance
expect 2 'is no folder' "$python" scripts/gpu-check --models "$folder/none"
expect 1 "not there: $folder/mendel" "$python" scripts/gpu-check --no-build --build "$folder"
# A driver that hangs.
mkdir -p "$folder/hung/kernels/cuda" "$folder/hung/bench"
for program in mendel kernels/cuda/cuda_gpu_test bench/model_parts bench/layer_mutants; do
  printf '#!/bin/sh\nexec sleep 100\n' >"$folder/hung/$program" && chmod +x "$folder/hung/$program"
done
expect 1 'mendel doctor did not answer in 1 s' "$python" scripts/gpu-check --no-build --build "$folder/hung" --answer 1
if "$build/mendel" doctor | grep -q '^backend cuda: not usable'; then
  expect 77 'SKIP: no GPU for correctness, layers: .*libcuda' "$python" scripts/gpu-check --no-build --build "$build" --parts correctness,layers
  expect 77 'SKIP: .*libcuda' "$layers" --device cuda "$folder/filled.onnx"
fi

# Results of a day are kept when another run produces other parts; finished work is not repeated.
if "$python" -c 'import numpy' 2>/dev/null; then
  mkdir "$folder/one" && cp "$folder/filled.onnx" "$folder/one/" || fail "no model"
  check=("$python" scripts/gpu-check --device cpu --no-build --build "$build" --models "$folder/one" --keep "$folder/kept" --output "$folder/day.md"
    --numerics default)
  expect 0 'skipped: correctness' "${check[@]}" --seconds 30 --parts correctness,layers
  expect 0 'Nothing was found wrong' "${check[@]}" --seconds 30 --parts sanitizer
  [ "$(grep -c '^## ' "$folder/day.md")" = 3 ] || fail "not all parts of the day are there"
  grep -q '^## correctness' "$folder/day.md" && grep -q '^## sanitizer' "$folder/day.md" && grep -q '| filled |' "$folder/day.md" || fail "a part of the day is lost"
fi

# The archive works where there is no source, no compiler and no PATH.
if [ "$build" = "$(realpath build/release)" ] && "$python" -c 'import numpy' 2>/dev/null; then
  expect 0 'MB of at most 40 MB' "$python" scripts/gpu_archive --no-build --models "$folder/one" --batch "" --level 0 --output "$folder/gpu.tar.xz"
  mkdir "$folder/elsewhere" && tar -C "$folder/elsewhere" -xf "$folder/gpu.tar.xz" || fail "the archive cannot be unpacked"
  expect 0 '\| filled \| [0-9]+->[0-9]+ ' env -i PATH=/nowhere HOME="$folder" "$python" "$folder/elsewhere/mendel-gpu/scripts/gpu-check" --device cpu \
    --seconds 30 --parts layers --numerics default
  ls "$folder"/elsewhere/mendel-gpu/bench/results/gpu-cpu-*.md >/dev/null || fail "the archive's run wrote no results"
fi

# Plans next to other engines; missing engines of this Python are named.
if "$python" -c 'import numpy' 2>/dev/null; then
  "$pairs" "$folder" || fail "make_verify_pairs"
  gpu=("$python" bench/gpu --mendel "$build/mendel" --model-parts "$parts" --batch 1)
  expect 0 '\| net \| 1 \| [0-9.]+ \([0-9]+ %\) / [0-9.]+ \([0-9]+ %\) \|' "${gpu[@]}" --device cpu --budget 1s --rounds 2 --duration 0.05 --seconds 60 \
    --output "$folder/table.md" "$folder/net.onnx"
  "$python" -c 'import torch' 2>/dev/null || grep -q "PyTorch eager: missing: No module named 'torch'" "$folder/table.md" || fail "torch is not named"
  expect 0 'Left out, the time being over: net at batch 1' "${gpu[@]}" --device cpu --seconds 0 "$folder/net.onnx"
  expect 0 '\| net \| 1 \|' "${gpu[@]}" --device cpu --budget 1s --rounds 1 --duration 0.05 --seconds 60 --rows "$folder/rows.json" "$folder/net.onnx"
  expect 0 '\| net \| 1 \|' "${gpu[@]}" --device cpu --seconds 0 --rows "$folder/rows.json" "$folder/net.onnx"
  # Peers have the precision of the class, or refuse it.
  "$python" - "$folder/some.npz" <<<'import numpy, sys; numpy.savez(sys.argv[1], x=numpy.zeros(1))'
  expect 1 'runs this file in f32 alone, not in bf16' "$python" bench/gpu_peers.py onnxruntime cpu bf16 1 "$folder/net.onnx" "$folder" \
    "$folder/some.npz" "$folder/outputs.npz"
  if "$python" -c 'import torch' 2>/dev/null; then
    cat >"$folder/formats.py" <<'PYTHON'
import numpy, subprocess, sys
build, model, folder = sys.argv[1:]
subprocess.run([f"{build}/bench/model_parts", "unpack", model, f"{folder}/formats"], check=True)
sys.path.insert(0, "bench")
import gpu_peers, onnx_torch
_, reported = onnx_torch.load(f"{folder}/formats")
inputs = {one["name"]: numpy.random.default_rng(1).standard_normal(one["shape"]).astype("f4") for one in reported["inputs"]}
found = {}
for numerics in ("strict", "bf16"):
    enqueue, wait, outputs, _ = gpu_peers.open_torch("eager", "cpu", numerics, 1, f"{folder}/formats", inputs)
    enqueue()
    wait()
    found[numerics] = outputs()[0]
difference = abs(found["strict"] - found["bf16"]).max() / abs(found["strict"]).max()
print(f"bf16 differs by {difference:.0e}: {'rounded' if 1e-5 < difference < 1e-1 else 'wrong'}")
PYTHON
    expect 0 'rounded' "$python" "$folder/formats.py" "$build" "$folder/net.onnx" "$folder"
  fi
  expect 2 'no peer slide_rule' "${gpu[@]}" --peers slide_rule "$folder/net.onnx"
  if "$build/mendel" doctor | grep -q '^backend cuda: not usable'; then expect 77 'SKIP: .*libcuda' "${gpu[@]}" "$folder/net.onnx"; fi
else
  echo "not tested: bench/gpu, since $python has no numpy"
fi
exit $((failures > 0))
