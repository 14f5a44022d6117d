#!/bin/bash
# rebind_cli_test.sh MENDEL MAKE_PAIRS: a plan takes other weights; what a watching program is reported; SIGTERM.
set -u
mendel=$1
make_pairs=$2
. "$(dirname "$0")/cli_expect.sh"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 1

"$make_pairs" . || exit 1
optimize=("$mendel" optimize --threads 1 --cache cache.sqlite --max-candidates 2 --budget 5s)
expect 0 'wrote' "${optimize[@]}" net.onnx -o net.plan

# New weights: a plan of the new model, and of it only.
expect 0 'weights +2 tensors' "$mendel" rebind net.plan --model one_weight.onnx -o new.plan
expect 0 '^equivalent' "$mendel" verify new.plan --model one_weight.onnx
expect 1 'other weights' "$mendel" verify new.plan --model net.onnx
expect 0 '"bound_log2"' "$mendel" rebind net.plan --model one_weight.onnx -o new.plan --json
expect 0 '^equivalent' "$mendel" verify new.plan --model one_weight.onnx --fresh
# `mendel refit` is the old name of `mendel rebind`, kept for version 0.1.
expect 0 'weights +2 tensors' "$mendel" refit net.plan --model one_weight.onnx -o new.plan

# A plan for a GPU that is not here: gated again as it was when it was made, and as unmeasured as before.
expect 0 'wrote' "$mendel" optimize net.onnx --device cuda:sm_90 --offline --cache cache.sqlite --max-candidates 1 --budget 5s -o gpu.plan
expect 0 'no kernel was run' "$mendel" rebind gpu.plan --model one_weight.onnx -o new_gpu.plan
expect 0 '^times: unmeasured, predicted' "$mendel" inspect new_gpu.plan
expect 0 '^equivalent' "$mendel" verify new_gpu.plan --model one_weight.onnx

# Another structure, named.
expect 2 "outputs? .*structure|structure.*outputs?" "$mendel" rebind net.plan --model two.onnx -o bad.plan
expect 2 "structure.*weight|structure.*operators" "$mendel" rebind net.plan --model rewritten.onnx -o bad.plan
expect 2 "x" "$mendel" rebind net.plan --model taller.onnx -o bad.plan
expect 2 'mendel: ' "$mendel" rebind net.onnx --model net.onnx -o bad.plan
expect 5 'mendel: ' "$mendel" rebind net.plan --model missing.onnx -o bad.plan
[ -e bad.plan ] && fail "a refused rebind wrote a plan"

# Progress for a program: one object a line, the phases in order.
"${optimize[@]}" net.onnx -o other.plan --target-bound=-100 --json --progress-fd 7 7>progress.txt >facts.json 2>/dev/null || fail "optimize with --progress-fd"
for phase in import normalize search certify 'numeric gate' write; do
  grep -q "^{\"phase\":\"$phase\".*}\$" progress.txt || fail "no phase '$phase': $(cat progress.txt)"
done
grep -Eq '"bound_log2": -1[0-9][0-9]' facts.json || fail "--target-bound -100: $(cat facts.json)"
"$mendel" verify net.onnx rewritten.onnx --progress-fd 7 7>progress.txt >/dev/null || fail "verify with --progress-fd"
grep -q '"compare"' progress.txt || fail "no phase of verify: $(cat progress.txt)"
# A watcher that goes away does not end the work.
"${optimize[@]}" net.onnx -o other.plan --progress-fd 7 7> >(true) >/dev/null 2>&1 || fail "optimize without a watcher"

((failures == 0)) && echo "rebind_cli_test: all good"
exit $((failures > 0))
