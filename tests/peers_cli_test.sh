#!/bin/bash
# peers_cli_test.sh MENDEL MAKE_SMALL_PLAN: `mendel compare --with onnxruntime` and `mendel bench --peers` with a stand-in of ONNX Runtime, which
# returns the arrays of a folder. The real runtimes are downloads: scripts/soak peers-installed.
set -u
mendel=$1
make_small_plan=$2
. "$(dirname "$0")/cli_expect.sh"
python=/usr/bin/python3
"$python" -c 'import numpy' 2>/dev/null || { echo "SKIP: $python has no numpy"; exit 77; }
"$mendel" doctor | grep -q '^backend cpu: ' || { echo "SKIP: no backend"; exit 77; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 1

mkdir -p modules/onnxruntime-9.8.7.dist-info answers
printf 'Metadata-Version: 2.1\nName: onnxruntime\nVersion: 9.8.7\n' >modules/onnxruntime-9.8.7.dist-info/METADATA
cat >modules/onnxruntime.py <<'PY'
import os, types
import numpy

__version__ = "9.8.7"

class SessionOptions:
    def add_session_config_entry(self, key, value):
        pass

class InferenceSession:
    def __init__(self, model, options, providers):
        self.model = open(model, "rb").read() if isinstance(model, str) else model
        self.threads = options.intra_op_num_threads

    def get_inputs(self):
        return [types.SimpleNamespace(name="x")]

    def run(self, names, feed):
        assert list(feed) == ["x"] and self.threads > 0
        if names is None:
            return []
        assert all(name.encode() in self.model for name in names)
        return [numpy.load(os.path.join("answers", name + ".npy")) for name in names]
PY
export PYTHONPATH=$folder/modules MENDEL_PYTHON=$python

"$make_small_plan" cpu small.plan || exit 1
"$mendel" export small.plan --onnx small.onnx >/dev/null || exit 1
"$mendel" run small.onnx --random-inputs 1 --output-dir answers >/dev/null 2>&1 || exit 1

expect 0 '^small.onnx with onnxruntime \(ONNX Runtime 9.8.7\)' "$mendel" compare small.onnx --with onnxruntime
expect 0 '^1 values compared, all within tolerance$' "$mendel" compare small.onnx --with onnxruntime
"$python" - <<'PY'
import numpy
value = numpy.load("answers/y.npy")
value[1, 2] += 1
numpy.save("answers/y.npy", value)
PY
expect 1 '^output y +f32\[2,3\] +1.00e\+00 .* \[1,2\]: ' "$mendel" compare small.onnx --with onnxruntime
expect 1 '1 beyond tolerance, the first is y' "$mendel" compare small.onnx --with onnxruntime
expect 0 'all within' "$mendel" compare small.onnx --with onnxruntime --tolerance 1000
rm answers/y.npy
expect 5 "ONNX Runtime of $python: FileNotFoundError" "$mendel" compare small.onnx --with onnxruntime

expect 0 '^ONNX Runtime +9.8.7 +1 +[0-9.]+ +[0-9]+ %' "$mendel" bench small.plan --peers --threads 1 --duration 50ms
expect 0 '^Mendel +[0-9.]+ +1 +[0-9.]+ +[0-9]+ %' "$mendel" bench small.plan --peers --threads 1 --duration 50ms
expect 0 "^OpenVINO .*No module named 'openvino'" "$mendel" bench small.plan --peers --threads 1 --duration 50ms
expect 0 "in turn, 5 rounds each; the others ran the plan's baseline, written as ONNX, in $python" \
  "$mendel" bench small.plan --peers --threads 1 --duration 50ms
expect 0 'the others ran small.onnx' "$mendel" bench small.plan --peers --peers-model small.onnx --threads 1 --duration 50ms
expect 0 '"missing": "ModuleNotFoundError' "$mendel" bench small.plan --peers --threads 1 --duration 50ms --json
expect 2 'peers' "$mendel" bench small.plan --peers-model small.onnx
PYTHONPATH='' expect 5 'no Python with onnxruntime or openvino .*--peers-python PATH' "$mendel" bench small.plan --peers --duration 50ms

((failures == 0)) && echo "peers_cli_test: all good"
exit $((failures > 0))
