#!/bin/bash
# optimize_cli_test.sh MENDEL MODEL: the main job from outside: optimize, run, verify, explain, inspect, export, what kill -9 and
# Ctrl-C leave behind, and what damaged files get.
set -u
mendel=$1
model=$2
. "$(dirname "$0")/cli_expect.sh"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 1

optimize=("$mendel" optimize "$model" --threads 1 --cache cache.sqlite --max-candidates 2 --budget 20s)

# kill -9 in the middle: no plan, no half-written one, a cache that is intact and goes on.
"${optimize[@]}" -o killed.plan >/dev/null 2>&1 &
pid=$!
sleep 1.5
kill -9 "$pid" 2>/dev/null
wait "$pid" 2>/dev/null
[ -e killed.plan ] && fail "kill -9 left a plan"
expect 0 'intact' "$mendel" cache verify --cache cache.sqlite

expect 0 'every element equal, bound 2\^-' "${optimize[@]}" -o a.plan
# The same cache and seed with fixed draws: the same bytes.
expect 0 'wrote' "${optimize[@]}" --certificate-seed 5 -o b.plan
expect 0 'wrote' "${optimize[@]}" --certificate-seed 5 --error-on-cache-miss -o c.plan
cmp b.plan c.plan || fail "two plans of one cache and seed differ"

expect 0 'output' "$mendel" run a.plan --random-inputs 3 --output-dir out
[ -s out/output.npy ] || fail "no output file"
expect 0 '^equivalent' "$mendel" verify a.plan --model "$model"
expect 0 '^equivalent.*fresh' "$mendel" verify a.plan --model "$model" --fresh
expect 0 'squeezenet' "$mendel" explain a.plan
expect 0 'certificate' "$mendel" inspect a.plan
expect 0 '"speedup"' "$mendel" bench a.plan --baseline --duration 200ms --json
expect 0 'out.onnx' "$mendel" export a.plan --onnx out.onnx
# (The search may have chosen mutants: then the certificate is about another original than the export.)
expect 0 'equivalent' "$mendel" verify a.plan --model out.onnx --fresh
expect 0 'dilation_stack.*partial' "$mendel" rules

# Three batches, one file: y = relu(x w) with x f32[n,4] and w of 64 bytes $1.
batches() {
  printf '\x08\x07:\x9d\x01\x0a\x15\x0a\x01x\x0a\x01w\x12\x01h\x1a\x02fc\x22\x06MatMul\x0a\x11\x0a\x01h\x12\x01y\x1a\x03act\x22\x04Relu\x12\x03dyn*K\x08\x04\x08\x04\x10\x01B\x01wJ@'
  printf "$1%.0s" {1..64}
  printf 'Z\x14\x0a\x01x\x12\x0f\x0a\x0d\x08\x01\x12\x09\x0a\x03\x12\x01n\x0a\x02\x08\x04b\x09\x0a\x01y\x12\x04\x0a\x02\x08\x01B\x04\x0a\x00\x10\x0d'
}
batches '?' >batches.onnx
batches '>' >other.onnx
bundle=("$mendel" optimize batches.onnx --weights symbolic --threads 1 --cache cache.sqlite --max-candidates 2 --budget 5s --certificate-seed 5
  --shapes x:1x4 --shapes x:4x4 --shapes x:16x4)
expect 0 '^member 2  x:16x4' "${bundle[@]}" -o bundle.plan
expect 0 '"inputs": "x:4x4"' "${bundle[@]}" --error-on-cache-miss -o same.plan --json
cmp bundle.plan same.plan || fail "two bundles of one cache and seed differ"
expect 0 '^y +f32\[16,4\]' "$mendel" run bundle.plan --random-inputs 1 --shapes x:16x4 --output-dir out
expect 2 'no member for x:2x4; it offers x:1x4; x:4x4; x:16x4' "$mendel" run bundle.plan --random-inputs 1 --shapes x:2x4 --output-dir out
[ "$("$mendel" verify bundle.plan --model batches.onnx | grep -c '^equivalent')" = 3 ] || fail "not every member is verified"
[ "$("$mendel" verify bundle.plan --model batches.onnx --shapes x:4x4 | grep -c '^equivalent')" = 1 ] || fail "verify --shapes"
expect 1 'contains other weights' "$mendel" verify bundle.plan --model other.onnx
expect 0 'wrote +rebound.plan' "$mendel" rebind bundle.plan --model other.onnx -o rebound.plan
expect 0 '^member 2  x:16x4' "$mendel" verify rebound.plan --model other.onnx
expect 0 '^kind: bundle' "$mendel" inspect rebound.plan
expect 2 "input 'x' is given two shapes" "$mendel" optimize batches.onnx --shapes x:1x4,x:4x4 -o bad.plan
expect 2 'members 0 and 1 of the bundle have the same input shapes' "$mendel" optimize batches.onnx --shapes x:1x4 --shapes x:1x4 -o bad.plan
expect 2 "shape of input 'z' in every --shapes" "$mendel" optimize batches.onnx --shapes x:1x4 --shapes x:4x4,z:1 -o bad.plan
expect 2 'only mendel optimize takes several' "$mendel" verify batches.onnx batches.onnx --shapes x:1x4 --shapes x:4x4
expect 2 'the service makes no bundles' "$mendel" submit batches.onnx --shapes x:1x4 --shapes x:4x4 -o bad.plan

# The class bf16: the plan says so, wherever it is read, and machines that do not multiply in bf16 say that and deliver default.
class=default
"$mendel" doctor | grep -q 'avx512_core_bf16\|amx' && class=bf16
low=("$mendel" optimize batches.onnx --weights symbolic --shapes x:16x4 --threads 1 --cache cache.sqlite --max-candidates 2 --budget 5s --numerics bf16)
expect 0 '^error +y: baseline .*, plan ' "${low[@]}" -o low.plan
expect 0 "^numerics: $class" "$mendel" inspect low.plan
expect 0 "1 threads, numerics $class" "$mendel" explain low.plan
expect 0 '^equivalent' "$mendel" verify low.plan --model batches.onnx
expect 0 '^y +f32\[16,4\]' "$mendel" run low.plan --random-inputs 1 --output-dir out
expect 0 'wrote +relow.plan' "$mendel" rebind low.plan --model other.onnx -o relow.plan
expect 0 "^numerics: $class" "$mendel" inspect relow.plan
expect 0 'note: numerics bf16 allows no more than default here: .*multiply in bf16' env DNNL_MAX_CPU_ISA=AVX2 "${low[@]}" -o low.plan
expect 2 "unknown numerics class 'sloppy' \(strict, default, int8, high, tf32, f16, bf16\)" "$mendel" optimize batches.onnx --numerics sloppy -o bad.plan

# A device that this machine has not is not supported here, which is said before any work.
if "$mendel" doctor | grep -q '^backend cuda: not usable'; then
  expect 2 'without a GPU, .*--device cuda:sm_90 --offline' "$mendel" optimize "$model" --device cuda -o none.plan
  [ -e none.plan ] && fail "a plan for a device that is not there"
fi

# For a device that is not here: predicted, certified, and refused where it cannot run.
export XDG_CACHE_HOME=$folder/caches
offline=("$mendel" optimize "$model" --offline --cache cache.sqlite --max-candidates 1 --budget 20s)
expect 0 'times are predicted for H100 \(sm_90\) by roofline' "${offline[@]}" --device cuda:sm_90 -o gpu.plan
expect 0 '^times: unmeasured, predicted' "$mendel" inspect gpu.plan
expect 0 'ms \(unmeasured, predicted\) on cuda:sm_90' "$mendel" explain gpu.plan
# Algorithms are chosen by predicted seconds, those of the class only, and again the same without predicting anew.
expect 0 '^algorithm cudnn  for %' "$mendel" inspect gpu.plan
"$mendel" inspect gpu.plan | grep -q '^algorithm .*tf32' && fail "TF32 under numerics default"
expect 0 'wrote' "${offline[@]}" --device cuda:sm_90 --certificate-seed 5 -o gpu1.plan
expect 0 'wrote' "${offline[@]}" --device cuda:sm_90 --certificate-seed 5 --error-on-cache-miss -o gpu2.plan
cmp gpu1.plan gpu2.plan || fail "two offline plans of one cache and seed differ"
expect 0 'wrote' "${offline[@]}" --device cuda:sm_90 --numerics tf32 -o tf32.plan
expect 0 '^algorithm cudnn-tf32-nhwc  for %' "$mendel" inspect tf32.plan
if "$mendel" doctor | grep -q '^backend cuda: not usable'; then
  expect 2 'for cuda \(sm_90\), which this machine cannot run: ' "$mendel" run gpu.plan --random-inputs 3 --output-dir out
  expect 2 'for cuda \(sm_90\), which this machine cannot run: ' "$mendel" bench gpu.plan --duration 20ms
fi
expect 2 "not made for 'cuda:sm_12' but for cuda:sm_100, .*cuda:sm_90" "${offline[@]}" --device cuda:sm_12 -o none.plan
expect 2 'add --offline' "$mendel" optimize "$model" --device cuda:sm_90 -o none.plan
[ -e none.plan ] && fail "a plan for a device that nobody has"

# Without a budget: the baseline, measured and certified.
expect 0 '^speed-up +1\.00x  \(0 mutants, 0 algorithm choices\)' "$mendel" optimize "$model" --threads 1 --cache zero.sqlite --budget 0 -o zero.plan
expect 3 'certification ran out of time' "$mendel" optimize "$(dirname "$model")/camera.onnx" --threads 1 --cache zero.sqlite --budget 0 --certify-limit 1ms -o late.plan
[ -e late.plan ] && fail "a plan without a certificate"

# Ctrl-C and SIGTERM once: the best so far, if the grace of two seconds suffices for its certificate; else nothing.
for signal in INT TERM; do
  "$mendel" optimize "$model" --threads 1 --cache other.sqlite --budget 60s -o "$signal.plan" >"$signal.txt" 2>&1 &
  pid=$!
  sleep 2
  kill "-$signal" "$pid"
  code=0
  wait "$pid" || code=$?
  case $code in
    0)
      grep -q interrupted "$signal.txt" || fail "the stop reason is missing: $(cat "$signal.txt")"
      [ -s "$signal.plan" ] || fail "an interrupted search wrote no plan"
      ;;
    130) [ -e "$signal.plan" ] && fail "a plan that was not certified in time" ;;
    *) fail "SIG$signal ends with $code: $(cat "$signal.txt")" ;;
  esac
done

# SIGTERM during the import: the progress pipe is full, so that the import waits for its reader until the signal has arrived.
mkfifo progress
exec 8<>progress
head -c 65536 /dev/zero >&8
"$mendel" optimize "$model" --threads 1 --cache import.sqlite --budget 60s -o import.plan --progress-fd 8 >import.txt 2>&1 &
pid=$!
# The shell's own handler of SIGTERM does not count: before exec the child still has it.
handles_term() { [[ $(<"/proc/$pid/comm") == mendel* ]] && (((0x$(sed -n 's/^SigCgt:[[:space:]]*//p' "/proc/$pid/status") >> 14) & 1)); }
until handles_term; do
  [ -e "/proc/$pid" ] || { fail "the import ended before it took a signal: $(cat import.txt)"; exit 1; }
  sleep 0.05
done
kill -TERM "$pid"
head -c 65536 <&8 >/dev/null
code=0
wait "$pid" || code=$?
exec 8>&-
[ "$code" = 130 ] || fail "SIGTERM during the import ends with $code: $(cat import.txt)"
grep -q "interrupted during the import" import.txt || fail "the import did not end: $(cat import.txt)"
[ -e import.plan ] && fail "SIGTERM during the import left a plan"

# Bad input: a sentence and exit code 2, and nothing written.
head -c 100000 "$model" >cut.onnx
expect 2 'mendel: ' "$mendel" optimize cut.onnx -o bad.plan --cache cache.sqlite
expect 5 'mendel: ' "$mendel" optimize missing.onnx -o bad.plan --cache cache.sqlite
expect 2 'no rule' "$mendel" optimize "$model" -o bad.plan --disable nonsense --cache cache.sqlite
expect 2 'shape|input' "$mendel" optimize "$model" -o bad.plan --shapes nothere:1x3 --cache cache.sqlite
head -c 200000 a.plan >cut.plan
expect 2 'mendel: ' "$mendel" run cut.plan --random-inputs 1 --output-dir out
[ -e bad.plan ] && fail "a failed run wrote a plan"

((failures == 0)) && echo "optimize_cli_test: all good"
exit $((failures > 0))
