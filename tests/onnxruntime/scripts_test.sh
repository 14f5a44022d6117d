#!/bin/bash
# scripts_test.sh LIBMENDEL: three scripts written for ONNX Runtime (a classifier, an OCR pipeline, a sentence encoder) print the same with
# mendel in place of it, unchanged but for the import. Builds the wheel; needs a package index; SKIP says so.
set -u
library=$(realpath "$1")
here=$(cd "$(dirname "$0")" && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv" 2>/dev/null || { echo "SKIP: no venv (Debian: python3-venv)"; exit 77; }
python=$folder/venv/bin/python
pip=("$folder/venv/bin/pip" --disable-pip-version-check -q)
"${pip[@]}" install onnxruntime onnx numpy pillow rapidocr-onnxruntime magika==0.6.2 >/dev/null 2>&1 || { echo "SKIP: no package index"; exit 77; }
wheels=${MENDEL_WHEELS:-$folder/wheels}
[[ -d $wheels ]] || "$here/../../scripts/wheel" "$wheels" "$library" || exit 1
"${pip[@]}" install "$wheels"/mendel-*.whl || exit 1
export PYTHONDONTWRITEBYTECODE=1
cd "$folder" || exit 1
"$python" "$here/scripts/make_encoder.py" encoder.onnx || exit 1

# The packages and the scripts once more, with the other import.
mkdir changed
cp -r "$here"/scripts/*.py "$folder"/venv/lib/python3*/site-packages/{rapidocr_onnxruntime,magika} changed/
grep -rlE '^(import|from) onnxruntime( |$)' changed --include='*.py' >files
sed -i -E 's/^(import|from) onnxruntime( |$)/\1 mendel\2/' $(<files)
failed=0
for script in classifier ocr encoder; do
  "$python" "$here/scripts/$script.py" encoder.onnx >"$script.onnxruntime" 2>log || { cat log; exit 1; }
  PYTHONPATH=changed "$python" -c "import runpy, sys; sys.argv = ['$script', 'encoder.onnx']; runpy.run_path('changed/$script.py', run_name='__main__')
assert 'mendel' in sys.modules and 'onnxruntime' not in sys.modules, 'onnxruntime is still imported'" >"$script.mendel" 2>log || { cat log; exit 1; }
  cat "$script.mendel"
  diff "$script.onnxruntime" "$script.mendel" && echo "$script: the same" || failed=1
done
exit $failed
