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
expect 0 'equivalent' "$mendel" verify a.plan --model out.onnx
expect 0 'dilation_stack.*partial' "$mendel" rules

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
expect 0 '^equivalent' "$mendel" verify gpu.plan --model "$model"
if "$mendel" doctor | grep -q '^backend cuda: not usable'; then
  expect 2 'for cuda \(sm_90\), which this machine cannot run: ' "$mendel" run gpu.plan --random-inputs 3 --output-dir out
  expect 2 'for cuda \(sm_90\), which this machine cannot run: ' "$mendel" bench gpu.plan --duration 20ms
fi
expect 2 "not made for 'cuda:sm_12' but for cuda:sm_100, .*cuda:sm_90" "${offline[@]}" --device cuda:sm_12 -o none.plan
expect 2 'add --offline' "$mendel" optimize "$model" --device cuda:sm_90 -o none.plan
[ -e none.plan ] && fail "a plan for a device that nobody has"

# Ctrl-C once: the best so far.
"$mendel" optimize "$model" --threads 1 --cache other.sqlite --budget 60s -o interrupted.plan >interrupted.txt 2>&1 &
pid=$!
sleep 2
kill -INT "$pid"
wait "$pid" || fail "an interrupted search must deliver its best: $(cat interrupted.txt)"
grep -q interrupted interrupted.txt || fail "the stop reason is missing: $(cat interrupted.txt)"
[ -s interrupted.plan ] || fail "an interrupted search wrote no plan"

# SIGTERM is the same.
"$mendel" optimize "$model" --threads 1 --cache other.sqlite --budget 60s -o terminated.plan >terminated.txt 2>&1 &
pid=$!
sleep 2
kill -TERM "$pid"
wait "$pid" || fail "a terminated search must deliver its best: $(cat terminated.txt)"
grep -q interrupted terminated.txt || fail "the stop reason is missing: $(cat terminated.txt)"

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
