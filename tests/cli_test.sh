#!/bin/bash
# cli_test.sh MENDEL MAKE_SMALL_PLAN: drives the commands that need no model: output, JSON and exit codes.
set -u
mendel=$1
make_small_plan=$2
. "$(dirname "$0")/cli_expect.sh"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 1

# A .npy file of f32 zeros with shape ($2).
zeros() {
  local header="{'descr': '<f4', 'fortran_order': False, 'shape': ($2), }"
  printf '\x93NUMPY\x01\x00%b\x00%s' "\\x$(printf '%02x' ${#header})" "$header" >"$1"
  head -c "$3" /dev/zero >>"$1"
}

backend=cpu
"$mendel" doctor | grep -q '^backend cpu: ' || backend=reference
"$mendel" doctor | grep -q "^backend $backend: " || { echo "SKIP: no backend"; exit 77; }
"$make_small_plan" $backend small.plan || exit 1
zeros x.npy "2, 8" 64
zeros wrong.npy "8, 2" 64
printf 'graph "g" {\n  %%0 = Input() {name = "x", shape = [2]}\n  %%1 = Relu(%%0)\n  %%2 = Relu(%%0)\n  %%3 = Add(%%1, %%2)\n  return "y" = %%3\n}\n' >g.txt

expect 0 '^commit: ' "$mendel" --version
expect 0 'oneDNN: 2' "$mendel" --version
expect 0 'doctor' "$mendel" --help
expect 0 'baseline' "$mendel" bench --help
expect 2 'subcommand' "$mendel"
expect 0 '^\| `dilation_stack` \| dilation and stride \| partial \| `Conv' "$mendel" rules --markdown
expect 0 '"family": "dilation and stride"' "$mendel" rules --json
expect 2 "no command 'nonsense'; the commands are bench, .*, compare, .*, watch$" "$mendel" nonsense
expect 2 "bench has no option '--bugdet'; its options are .*--threads, .*--duration" "$mendel" bench small.plan --bugdet=3
expect 2 'duration' "$mendel" bench small.plan --duration
expect 2 'symbolic' "$mendel" verify a.onnx b.onnx --weights none
expect 2 "no rule 'none'; the rules are .*batch_to_space, " "$mendel" optimize a.onnx -o a.plan --disable none
expect 2 '' "$mendel" run
expect 2 '' "$mendel" run small.plan --output-dir out --threads 0

expect 0 '"usable": true' "$mendel" doctor --json
expect 0 '^y +f32\[2,3\] +out/y.npy' "$mendel" run small.plan --input x=x.npy --output-dir out
expect 0 '"file": "out/y.npy"' "$mendel" run small.plan --input x=x.npy --output-dir out --json
cmp -s <(tail -c 24 out/y.npy) <(head -c 24 /dev/zero) || { echo "FAIL: zeros do not give zeros"; failures=$((failures + 1)); }
expect 2 "input 'x' of type f32\[2,8\] is missing" "$mendel" run small.plan --output-dir out
expect 2 'f32\[8,2\] where f32\[2,8\]' "$mendel" run small.plan --input x=wrong.npy --output-dir out
expect 2 "no input 'z'" "$mendel" run small.plan --input x=x.npy --input z=x.npy --output-dir out
expect 2 'NAME=FILE' "$mendel" run small.plan --input x.npy --output-dir out
expect 5 'none.npy' "$mendel" run small.plan --input x=none.npy --output-dir out
expect 5 'none.plan' "$mendel" run none.plan --output-dir out
expect 5 '"code": "NOT_FOUND"' "$mendel" run none.plan --output-dir out --json

expect 0 'plan +median .*runs' "$mendel" bench small.plan --duration 20ms
expect 2 'none, cores or a list of CPUs such as 0,2-3, not .0;1' "$mendel" bench small.plan --duration 20ms --affinity '0;1'
expect 2 'may not run on CPU 65000' "$mendel" run small.plan --input x=x.npy --output-dir out --affinity 65000
if [ $backend = cpu ]; then
  expect 0 '^y +f32' "$mendel" run small.plan --input x=x.npy --output-dir out --affinity cores
  expect 0 'plan +median .*runs' "$mendel" bench small.plan --duration 20ms --affinity cores
else
  expect 2 'threads of backend reference cannot be pinned' "$mendel" bench small.plan --duration 20ms --affinity cores
fi
expect 0 '"speedup": ' "$mendel" bench small.plan --duration 20ms --baseline --json
expect 0 '^memory +activations .*alive at once: .*packed weights' "$mendel" bench small.plan --duration 20ms
for field in median_ms min_ms p90_ms read_ms load_ms first_run_ms alive; do expect 0 "\"$field\": [0-9]" "$mendel" bench small.plan --duration 20ms --json; done
expect 2 'duration' "$mendel" bench small.plan --duration soon
expect 0 'plan +median .*runs' "$mendel" bench small.plan --duration 20ms --input x=x.npy
expect 2 "the plan has no input 'z'; its inputs are 'x'" "$mendel" bench small.plan --duration 20ms --input z=x.npy
expect 2 "input 'x' is given twice" "$mendel" bench small.plan --duration 20ms --input x=x.npy --input x=x.npy

expect 0 '^content_hash: [0-9a-f]{64}' "$mendel" inspect small.plan
expect 0 '"kind": "plan"' "$mendel" inspect small.plan --json
expect 0 '^device after: 1500 of 1980 MHz' "$mendel" inspect small.plan
expect 0 '"before: 300 of 1980 MHz"' "$mendel" inspect small.plan --json
expect 0 'Relu x2' "$mendel" inspect g.txt

# A plan carries the text of its kernels: what is written out is that text, and a changed one is refused.
"$make_small_plan" $backend corrected.plan corrected || exit 1
expect 0 'kernel .*\.cu  cuda, channels last, corrects Patch corrected  sha256 [0-9a-f]{64}' "$mendel" inspect corrected.plan
expect 0 'corrected by recompute .*: 32 of 256 elements of y' "$mendel" explain corrected.plan
expect 0 '"shape":\[1,4,8,8\]' bash -c '"$0" explain corrected.plan --json | tr -d " \n"' "$mendel"
expect 0 '"bound_by": "(memory|arithmetic)"' "$mendel" explain corrected.plan --steps --json
expect 0 'wrote page.html' "$mendel" explain corrected.plan --html page.html
expect 0 'ends at x: an input' "$mendel" explain corrected.plan --sites
expect 0 '32 of 256 elements of y' grep -o 'Wrong without its correction: .*' page.html
expect 1 '^$' grep -E '(src|href)="[^#]|url\(' page.html
expect 0 'corrects Patch corrected' "$mendel" explain corrected.plan --emit-cuda cuda
expect 0 '"from_plan": true' "$mendel" explain corrected.plan --emit-cuda cuda_last --channels-last --json
for emitted in cuda cuda_last; do
  for file in "$emitted"/*.cu; do expect 0 "sha256 $(sha256sum "$file" | cut -c1-64)" "$mendel" inspect corrected.plan; done
done
expect 0 '"y"|wrote|out/y' "$mendel" run corrected.plan --random-inputs 1 --output-dir out
LC_ALL=C sed 's/__global__/__glabol__/' corrected.plan >changed.plan
for command in "inspect changed.plan" "explain changed.plan" "run changed.plan --random-inputs 1 --output-dir out"; do
  # shellcheck disable=SC2086
  expect 2 "section 'kernels' does not have its hash" "$mendel" $command
done
expect 5 '' "$mendel" inspect none

# A bundle: the plan for the shapes at hand.
"$make_small_plan" $backend bundle.plan bundle || exit 1
zeros x4.npy "4, 8" 128
zeros x3.npy "3, 8" 96
expect 0 '^y +f32\[2,3\] +out/y.npy' "$mendel" run bundle.plan --input x=x.npy --output-dir out
expect 0 '^y +f32\[4,3\] +out/y.npy' "$mendel" run bundle.plan --input x=x4.npy --output-dir out
expect 0 '"inputs": "x:4x8"' "$mendel" run bundle.plan --input x=x4.npy --output-dir out --json
expect 2 'no member for x:3x8; it offers x:2x8; x:4x8; x:16x8' "$mendel" run bundle.plan --input x=x3.npy --output-dir out
expect 2 'must choose one: x:2x8; x:4x8; x:16x8' "$mendel" run bundle.plan --random-inputs 3 --output-dir out
expect 0 '^y +f32\[16,3\]' "$mendel" run bundle.plan --random-inputs 3 --shapes x:16x8 --output-dir out
expect 2 'no member for x:16x8,x:2x8' "$mendel" run bundle.plan --input x=x.npy --shapes x:16x8 --output-dir out
expect 2 'the plan is for x:2x8, not for x:4x8' "$mendel" run small.plan --random-inputs 3 --shapes x:4x8 --output-dir out
expect 0 '^x:16x8 +[0-9.]+ +[0-9.]+ +[0-9.]+ +[0-9]+ +[0-9.]+ +[0-9.]+$' "$mendel" bench bundle.plan --duration 10ms --baseline
expect 0 '"inputs":"x:2x8","median_ms":.*"inputs":"x:16x8"' bash -c '"$0" bench bundle.plan --duration 10ms --json | tr -d " \n"' "$mendel"
expect 0 '^plan +median .*runs' "$mendel" bench bundle.plan --shapes x:4x8 --duration 10ms
expect 2 '--input measures one plan: choose one with --shapes: x:2x8; x:4x8; x:16x8' "$mendel" bench bundle.plan --input x=x.npy --duration 10ms
expect 2 'no member for x:5x8' "$mendel" bench bundle.plan --shapes x:5x8 --duration 10ms
expect 2 "names input 'x' twice" "$mendel" bench bundle.plan --shapes x:4x8 --shapes x:2x8 --duration 10ms
expect 0 '^kind: bundle' "$mendel" inspect bundle.plan
expect 0 '^member 1  x:4x8' "$mendel" inspect bundle.plan
expect 0 '"members":\[\{"inputs":"x:2x8","kind":"plan"' bash -c '"$0" inspect bundle.plan --json | tr -d " \n"' "$mendel"
expect 0 '^member 2  x:16x8' "$mendel" explain bundle.plan --steps
expect 0 'small.onnx' "$mendel" explain bundle.plan --shapes x:16x8
expect 2 'must choose one' "$mendel" explain bundle.plan --emit-cuda cuda
expect 2 'must choose one: x:2x8; x:4x8; x:16x8' "$mendel" export bundle.plan --onnx out.onnx
expect 0 'wrote out.onnx' "$mendel" export bundle.plan --onnx out.onnx --shapes x:4x8
expect 0 'input  x  f32\[4,8\]' "$mendel" inspect out.onnx
expect 2 "dimension 0 of input 'x' is 4, not 2" "$mendel" inspect out.onnx --shapes x:2x8
expect 2 '--shapes and --bind are for ONNX models' "$mendel" inspect small.plan --shapes x:2x8
expect 0 '^y +f32\[4,3\] +out/y.npy' "$mendel" run out.onnx --input x=x4.npy --output-dir out
expect 0 'mendel optimize.* makes a faster plan' "$mendel" run out.onnx --random-inputs 1 --output-dir out
expect 2 "dimension 0 of input 'x' is 4, not 2" "$mendel" run out.onnx --input x=x.npy --output-dir out
expect 2 'carries no certificate' "$mendel" verify bundle.plan --model out.onnx
expect 2 "member 0 \(x:2x8\): dimension 0 of input 'x' is 4, not 2" "$mendel" rebind bundle.plan --model out.onnx -o rebound.plan
expect 2 'a bundle of plans for several input shapes' "$mendel" verify bundle.plan out.onnx
expect 0 '^output y +f32\[4,3\] +[0-9.e+-]+ .* -$' "$mendel" compare out.onnx --with bundle.plan --shapes x:4x8
expect 0 '"first_beyond": null' "$mendel" compare out.onnx --with bundle.plan --shapes x:4x8 --layers --json
expect 0 'values compared, all within tolerance$' "$mendel" compare out.onnx --with out.onnx --layers --html compared.html
expect 0 '<h2>Values</h2>' cat compared.html
expect 2 'must choose one: x:2x8; x:4x8; x:16x8' "$mendel" compare out.onnx --with bundle.plan
expect 5 'no file none; --with takes a plan, an ONNX model, or the word onnxruntime' "$mendel" compare out.onnx --with none
expect 2 "--peers measures one plan: choose one with --shapes: x:2x8; x:4x8; x:16x8" "$mendel" bench bundle.plan --peers --duration 10ms
expect 5 'cannot run /nowhere/python.*give --python PATH' "$mendel" compare out.onnx --with onnxruntime --python /nowhere/python
head -c 900 bundle.plan >cut.plan
expect 2 'damaged plan' "$mendel" run cut.plan --input x=x.npy --output-dir out

expect 0 '%2 = Add\(%1, %1\)' "$mendel" step deduplicate g.txt
expect 0 '"changed": true' "$mendel" step deduplicate g.txt --json
expect 0 '"changed": false' "$mendel" step print g.txt --json
expect 0 'deduplicate: ' "$mendel" step --list
expect 2 "no stage 'fold'; the stages are .*deduplicate, " "$mendel" step fold g.txt
expect 2 'line 1' "$mendel" step print x.npy

# Damaged plans: refused, never a crash.
head -c 300 small.plan >cut.plan
expect 2 'damaged plan' "$mendel" run cut.plan --input x=x.npy --output-dir out
{ head -c 500 small.plan; printf 'X'; tail -c +502 small.plan; } >flipped.plan
expect 2 'damaged plan|hash' "$mendel" run flipped.plan --input x=x.npy --output-dir out
expect 2 'not a Mendel plan; `mendel optimize` makes one' "$mendel" bench x.npy
expect 2 'ONNX' "$mendel" run x.npy --output-dir out

((failures == 0)) && echo "cli_test: all good"
exit $((failures > 0))
