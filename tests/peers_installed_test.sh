#!/bin/bash
# peers_installed_test.sh MENDEL EXAMPLES: `mendel compare --with onnxruntime` and `mendel bench --peers` with the real runtimes, those of
# MENDEL_PYTHON or of a new virtual environment.
set -u
mendel=$1
examples=$2
. "$(dirname "$0")/cli_expect.sh"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 1
if [[ -z ${MENDEL_PYTHON:-} ]]; then
  python3 -m venv venv || { echo "SKIP: no venv"; exit 77; }
  venv/bin/python -m pip --disable-pip-version-check -q install onnxruntime openvino || { echo "SKIP: no package index"; exit 77; }
  export MENDEL_PYTHON=$folder/venv/bin/python
fi

"$mendel" optimize "$examples/camera.onnx" -o camera.plan --budget 5s --threads 1 >/dev/null 2>&1 || exit 1
for model in camera squeezenet1_1; do
  "$mendel" compare "$examples/$model.onnx" --with onnxruntime --layers --html "$model.html"
  expect 0 'values compared, all within tolerance$' "$mendel" compare "$examples/$model.onnx" --with onnxruntime --layers
done
expect 0 '<h2>Values</h2>' cat camera.html
# Every value of the model that depends on its input has a counterpart.
expect 0 '"without_counterpart": \[\]' "$mendel" compare "$examples/camera.onnx" --with onnxruntime --layers --json
expect 0 '"name": "conv1"' "$mendel" compare "$examples/camera.onnx" --with onnxruntime --layers --json
expect 0 'values compared, all within tolerance' "$mendel" compare "$examples/camera.onnx" --with camera.plan --layers
"$mendel" bench camera.plan --peers --peers-model "$examples/camera.onnx" --duration 2s
for runtime in Mendel 'ONNX Runtime' OpenVINO; do
  expect 0 "^$runtime +[0-9.]+ +1 +[0-9.]+ +[0-9]+ %" "$mendel" bench camera.plan --peers --duration 200ms
done

((failures == 0)) && echo "peers_installed_test: all good"
exit $((failures > 0))
