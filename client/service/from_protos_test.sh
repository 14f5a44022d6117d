#!/bin/bash
# from_protos_test.sh MENDEL: examples/from_protos.py with stubs that protoc makes from the .proto files, as its head says, against a server. SKIP
# without protoc's plugin for Python or grpcio.
set -u
mendel=$(realpath "$1")
repository=$(realpath "$(dirname "$0")/../..")
command -v protoc >/dev/null || { echo "SKIP: no protoc (Debian: protobuf-compiler)"; exit 77; }
plugin=$(command -v grpc_python_plugin) || { echo "SKIP: no grpc_python_plugin (Debian: protobuf-compiler-grpc)"; exit 77; }
/usr/bin/python3 -c 'import grpc' 2>/dev/null || { echo "SKIP: no grpcio (Debian: python3-grpcio)"; exit 77; }
folder=$(mktemp -d)
server=""
cleanup() {
  [[ -n $server ]] && kill "$server" 2>/dev/null && wait "$server" 2>/dev/null
  rm -rf "$folder"
}
trap cleanup EXIT
mkdir "$folder/api"
(cd "$repository" && protoc -Iproto --python_out="$folder/api" --grpc_out="$folder/api" --plugin=protoc-gen-grpc="$plugin" \
  $(cd proto && find google mendel/v1 -name '*.proto')) || exit 1
"$mendel" serve --listen 127.0.0.1:0 --metrics-listen "" --http-port none --data "$folder/data" >"$folder/log" 2>&1 &
server=$!
port=""
for _ in $(seq 600); do
  port=$(sed -n 's/.*"event":"serving".*"port":\([0-9]*\).*/\1/p' "$folder/log")
  [[ -n $port ]] && break
  sleep 0.1
done
[[ -n $port ]] || { cat "$folder/log"; exit 1; }
sed "s/localhost:8470/127.0.0.1:$port/" "$repository/examples/from_protos.py" >"$folder/client.py"
lines=$(sed '1,/^"""$/d' "$folder/client.py" | grep -c .)
[[ $lines -le 15 ]] || { echo "examples/from_protos.py has $lines lines of code"; exit 1; }
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$folder/api /usr/bin/python3 "$folder/client.py" "$repository/examples/camera.onnx" "$folder/camera.plan" >"$folder/phases" || exit 1
grep -q search "$folder/phases" || { echo "no phase was reported"; exit 1; }
"$mendel" verify "$folder/camera.plan" --model "$repository/examples/camera.onnx"
