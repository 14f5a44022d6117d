#!/bin/bash
# installed_test.sh LIBRARY: builds the wheel onnxruntime-ep-mendel from the built library, installs it beside ONNX Runtime in an unrelated
# folder, and runs stress.py and fuzz.py with what is installed. Needs a package index; SKIP says so.
set -u
library=$(realpath "$1")
here=$(cd "$(dirname "$0")" && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv" 2>/dev/null || { echo "SKIP: no venv (Debian: python3-venv)"; exit 77; }
python=$folder/venv/bin/python
pip=("$folder/venv/bin/pip" --disable-pip-version-check -q)
"${pip[@]}" install onnxruntime onnx numpy >/dev/null 2>&1 || { echo "SKIP: no package index"; exit 77; }
"$here/../../scripts/wheel" --provider "$folder/wheels" "$library" || exit 1
export PYTHONDONTWRITEBYTECODE=1
cd "$folder" || exit 1
"${pip[@]}" install "$folder"/wheels/onnxruntime_ep_mendel-*.whl || exit 1
"$python" "$here/stress.py" || exit 1
"$python" "$here/fuzz.py" --keep "$folder" || exit 1
