#!/bin/bash
# server_test.sh MENDEL MAKE_VERIFY_PAIRS PACKAGE_FOLDER: the command's and the Python package's client against a real server: a job from
# model to verified plan, the verifier, a server that restarts under a waiting client.
set -u
mendel=$1
make_pairs=$2
package=$3
here=$(cd "$(dirname "$0")" && pwd)
folder=$(mktemp -d)
server=""
failures=0
stop() { [ -n "$server" ] && kill "-${1:-TERM}" "$server" 2>/dev/null && wait "$server" 2>/dev/null; server=""; }
trap 'stop KILL; rm -rf "$folder"' EXIT
cd "$folder" || exit 1
export MENDEL_SERVER=unix:$folder/s
fail() { echo "FAIL: $1"; failures=$((failures + 1)); }
start() {
  "$mendel" serve --listen "unix:$folder/s" --data "$folder/data" --work "$folder/work" --metrics-listen 127.0.0.1:0 --drain-seconds 2 --lease-seconds 5 >>server.log 2>&1 &
  server=$!
  for _ in $(seq 200); do "$mendel" health >/dev/null 2>&1 && return; sleep 0.1; done
  echo "FAIL: no server"; tail -5 server.log; exit 1
}
expect() {  # CODE TEXT COMMAND...
  local code=$1 text=$2 output
  shift 2
  output=$("$@" 2>&1)
  local got=$?
  { [ $got -eq "$code" ] && grep -qE -- "$text" <<<"$output"; } || fail "$* -> $got instead of $code, or no '$text' in: $output"
}
"$make_pairs" . || exit 1
start
expect 0 'serving' "$mendel" health --service mendel.v1.Jobs
expect 0 'wrote       m.plan' "$mendel" submit net.onnx --budget 1s --threads 1 -o m.plan --request-id one
expect 0 'equivalent' "$mendel" verify m.plan --model net.onnx
expect 0 'equivalent' "$mendel" verify m.plan --model net.onnx --server "$MENDEL_SERVER"
expect 0 'wrote       again.plan' "$mendel" submit net.onnx --budget 1s --threads 1 -o again.plan --request-id one
cmp -s m.plan again.plan || fail "the same request id gave another plan"
[ "$("$mendel" jobs --json | grep -c '"work": "optimize"')" = 1 ] || fail "two jobs for one request id"
expect 0 'wrote       exact.plan' "$mendel" submit net.onnx --budget 1s --threads 1 --weights exact -o exact.plan
expect 2 'used for another job' "$mendel" submit net.onnx --budget 1s --threads 1 --weights exact --request-id one
expect 0 'equivalent' "$mendel" verify exact.plan --model net.onnx
expect 0 'unmeasured, predicted' "$mendel" submit net.onnx --budget 1s --device cuda:sm_90 -o gpu.plan
expect 0 'predicted\)  cuda sm_90' "$mendel" plans
expect 2 'spec.optimize.device' "$mendel" submit net.onnx --device cuda:sm_12
[ -f work/profiles.sqlite ] && [ ! -e data/work ] || fail "--work"
expect 0 '^equivalent' "$mendel" verify net.onnx rewritten.onnx --server "$MENDEL_SERVER"
expect 1 '^partial|^different' "$mendel" verify net.onnx one_weight.onnx --server "$MENDEL_SERVER"
expect 5 'NOT_FOUND|no |jobs/' "$mendel" watch 00000000-0000-4000-8000-000000000000

# A server that is killed and restarts while a client waits.
"$mendel" submit rewritten.onnx --budget 4s --threads 1 -o waited.plan >waited.log 2>&1 &
client=$!
sleep 1.5
stop KILL
start
wait $client || fail "the waiting client: $(cat waited.log)"
expect 0 'equivalent' "$mendel" verify waited.plan --model rewritten.onnx

MENDEL_SERVER=$MENDEL_SERVER "$here/../python/tests/run_tests" "$package" "$here/python_server_test.py" "$folder"
code=$?
[ $code -eq 0 ] || [ $code -eq 77 ] || fail "the Python client"
stop TERM
[ $failures -eq 0 ] && echo "client and server: good"
exit $((failures > 0))
