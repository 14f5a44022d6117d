#!/bin/bash
# verify_cli_test.sh MENDEL MAKE_PAIRS: two models in, a verdict out: exit codes, text, JSON, JUnit, witnesses.
set -u
mendel=$1
make_pairs=$2
. "$(dirname "$0")/cli_expect.sh"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 1

"$make_pairs" . || exit 1

# Every verdict and its exit code.
expect 0 '^equivalent: .*congruence' "$mendel" verify net.onnx net.onnx
expect 0 '^equivalent: .*bound 2\^-[0-9]+, [0-9]+ tests' "$mendel" verify net.onnx rewritten.onnx
expect 0 '^equivalent: .*bound 2\^-[0-9]+, 5 tests' "$mendel" verify net.onnx rewritten.onnx --tests 5
expect 0 '^equivalent' "$mendel" verify net.onnx rewritten.onnx --no-cut-points
expect 0 '^equivalent: .*same program of the weights' "$mendel" verify net.onnx rewritten.onnx --weights symbolic
expect 1 '^different: ' "$mendel" verify net.onnx no_bias.onnx
expect 1 '^partial: 2 of 8' "$mendel" verify net.onnx one_weight.onnx
expect 1 '\[0:2, 2:3\] wrong: at \[[01], 2\] A gives' "$mendel" verify net.onnx one_weight.onnx
expect 1 '^partial: 2 of 8' "$mendel" verify net.onnx one_weight.onnx --no-cut-points
expect 1 '^different: at least 2 of 8' "$mendel" verify net.onnx one_weight.onnx --no-regions
expect 0 'w  1 of 12 elements' "$mendel" verify net.onnx one_weight.onnx --weights symbolic
expect 3 '^unproven: .*no witness' "$mendel" verify waves.onnx ones.onnx
expect 3 'lacks axioms about: Cos, Sin' "$mendel" verify waves.onnx ones.onnx
expect 3 'out of time' "$mendel" verify net.onnx rewritten.onnx --time-limit 0.000001

# Limits hold in every phase. A model of symbolic size is compared at several sizes.
expect 3 'out of memory \(limit 0.05 GB\)' "$mendel" verify wide.onnx wider.onnx --memory-limit 50MB
expect 3 'out of time' "$mendel" verify wide.onnx wider.onnx --time-limit 0.3s
expect 2 'is no size' "$mendel" verify net.onnx net.onnx --memory-limit much
expect 1 '^different: ' "$mendel" verify centered.onnx zero.onnx
expect 1 'sizes of symbolic dimensions: N = 2' "$mendel" verify centered.onnx zero.onnx
expect 0 'sizes of symbolic dimensions: N = 1; N = 2; N = 3; N = 5' "$mendel" verify centered.onnx centered.onnx
expect 1 'sizes of symbolic dimensions: N = 1001' "$mendel" verify cut.onnx uncut.onnx
expect 0 'N = 999; N = 1000; N = 1001' "$mendel" verify cut.onnx cut.onnx
expect 0 '^equivalent' "$mendel" verify centered.onnx zero.onnx --shapes x:1x3
expect 0 '"sizes"' "$mendel" verify centered.onnx centered.onnx --json

# Names.
expect 0 "note: input 'x' of A is matched with 'u' of B by position" "$mendel" verify net.onnx renamed.onnx
expect 0 '^equivalent' "$mendel" verify net.onnx renamed.onnx --map x=u --map y=v
expect 2 "'nothing'" "$mendel" verify net.onnx renamed.onnx --map x=nothing
expect 2 'NAME' "$mendel" verify net.onnx renamed.onnx --map x
expect 0 '^equivalent' "$mendel" verify net.onnx renamed.onnx --map x=u --map y=v --map w=other --weights symbolic
expect 0 '^equivalent' "$mendel" verify two.onnx net.onnx --outputs y
expect 2 "only A has 's' f32\[2,4\]" "$mendel" verify two.onnx net.onnx
expect 2 "no output 'z'" "$mendel" verify two.onnx net.onnx --outputs z

# Mismatches and bad input: a sentence that names them.
expect 2 "input 'x' differs in shape: f32\[2,3\] in A, f32\[5,3\] in B" "$mendel" verify net.onnx taller.onnx
expect 2 "input 'x' differs in dtype: f32\[2,3\] in A, f64\[2,3\] in B" "$mendel" verify net.onnx double.onnx
expect 2 'NotAnOperator' "$mendel" verify net.onnx unsupported.onnx
expect 2 'garbage.onnx' "$mendel" verify net.onnx garbage.onnx
expect 5 'missing.onnx' "$mendel" verify net.onnx missing.onnx
expect 2 'two models' "$mendel" verify net.onnx
expect 2 '' "$mendel" verify net.onnx net.onnx --weights roughly
expect 2 '' "$mendel" verify net.onnx net.onnx --tests 0
expect 2 'duration' "$mendel" verify net.onnx net.onnx --time-limit soon

# JSON.
for member in schema verdict reason lacking bound_log2 tests primes seed degree outputs witness earliest weights facts notes \
  wrong_elements regions_known boxes begin end status element value_a value_b error_a error_b; do
  expect 1 "\"$member\": " "$mendel" verify net.onnx one_weight.onnx --json
done
expect 0 '"schema": "mendel.verify/1"' "$mendel" verify net.onnx rewritten.onnx --json
for member in regions congruent by_regions probes dimensions extent breaks period period_cause classes probed not_understood; do
  expect 1 "\"$member\": " "$mendel" verify net.onnx one_weight.onnx --json --explain-regions
done
expect 3 '"verdict": "unproven"' "$mendel" verify waves.onnx ones.onnx --json
expect 1 '"seed": 77' "$mendel" verify net.onnx one_weight.onnx --json --seed 77
expect 2 '"code": "INVALID_ARGUMENT"' "$mendel" verify net.onnx taller.onnx --json

# JUnit and witnesses. The two programs give the witness's values for its input (float64 and finite, so that any runtime takes it).
expect 1 '^partial' "$mendel" verify net.onnx one_weight.onnx --junit report.xml --witness found --html page.html
expect 0 'class="wrong"' grep -o '<rect class="wrong"' page.html
grep -q '<failure type="partial"' report.xml || { echo "FAIL: no failure in report.xml"; failures=$((failures + 1)); }
head -c 128 found/witness_0/x.npy 2>/dev/null | grep -aq "'descr': '<f8'.*'shape': (2, 3)" ||
  { echo "FAIL: no float64 witness"; failures=$((failures + 1)); }
expect 0 '^equivalent' "$mendel" verify net.onnx rewritten.onnx --junit report.xml
grep -q 'failures="0" errors="0"' report.xml || { echo "FAIL: failures in report.xml"; failures=$((failures + 1)); }
expect 3 '^unproven' "$mendel" verify waves.onnx ones.onnx --junit report.xml
grep -q '<error type="unproven"' report.xml || { echo "FAIL: no error in report.xml"; failures=$((failures + 1)); }


((failures == 0)) && echo "verify_cli_test: all good"
exit $((failures > 0))
