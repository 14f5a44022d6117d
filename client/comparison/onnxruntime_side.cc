#include <nlohmann/json.hpp>
#include <utility>

#include "base/status.h"
#include "client/comparison/other_side.h"
#include "client/peers/exchange.h"
#include "client/peers/python.h"
#include "runtime/npy.h"

namespace mendel {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kRunSeconds = 600;

// A message of protobuf is merged with what follows it: appending `graph { output { name } }` to a
// model adds outputs, without a package that knows ONNX.
constexpr char kScript[] = R"py(
import json, os, sys
import numpy, onnxruntime

def field(number, data):
    size, length = len(data), b""
    while True:
        length += bytes([size & 127 | (128 if size > 127 else 0)])
        size >>= 7
        if not size:
            return bytes([number << 3 | 2]) + length + data

request = json.loads(sys.stdin.readline())
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = request["threads"]
options.log_severity_level = 3
model = request["model"]
if request["layers"]:
    options.add_session_config_entry("session.model_external_initializers_file_folder_path",
                                     os.path.dirname(os.path.abspath(model)))
    with open(model, "rb") as file:
        model = file.read()
    model += field(7, b"".join(field(12, field(1, name.encode())) for name in request["layers"]))
session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
known = {value.name for value in session.get_inputs()}
feed = {name: numpy.load(file) for name, file in request["inputs"].items() if name in known}
names = request["outputs"] + request["layers"]
files = {}
for number, (name, value) in enumerate(zip(names, session.run(names, feed))):
    files[name] = os.path.join(request["folder"], f"value{number}.npy")
    numpy.save(files[name], numpy.ascontiguousarray(value).reshape(value.shape))
print(json.dumps({"version": onnxruntime.__version__, "files": files}), flush=True)
)py";

}  // namespace

absl::StatusOr<SideValues> ValuesOfOnnxRuntime(const ComparedModel& model, int threads,
                                               const std::string& python) {
  MENDEL_ASSIGN_OR_RETURN(const auto folder, ExchangeFolder::Make());
  Json inputs = Json::object(), outputs = Json::array(), layers = Json::array();
  MENDEL_RETURN_IF_ERROR(folder->Write(model.inputs, inputs));
  MENDEL_RETURN_IF_ERROR(folder->Write(model.bindings, inputs));
  const Graph& graph = model.imported.graph;
  for (size_t k = 0; k < graph.outputs().size(); ++k) {
    const GraphOutput& output = graph.outputs()[k];
    const DType dtype = graph.type(output.value).dtype;
    if (dtype == DType::kBF16 || IsFloat8(dtype)) continue;  // NumPy has no such type
    (k < model.outputs ? outputs : layers).push_back(output.name);
  }
  MENDEL_ASSIGN_OR_RETURN(const auto program, PythonProgram::Start(python, kScript, {}, {}));
  const auto answer = program->Ask({{"model", model.path},
                                    {"inputs", inputs},
                                    {"outputs", outputs},
                                    {"layers", layers},
                                    {"folder", folder->path()},
                                    {"threads", threads}},
                                   kRunSeconds);
  if (!answer.ok()) return Annotate(answer.status(), Cat("ONNX Runtime of ", python));
  SideValues side;
  side.runtime = Cat("ONNX Runtime ", (*answer)["version"].get<std::string>());
  for (const auto& [name, file] : (*answer)["files"].items()) {
    MENDEL_ASSIGN_OR_RETURN(Tensor value, ReadNpy(file.get<std::string>()));
    side.values.push_back({name, name, std::move(value)});
  }
  return side;
}

}  // namespace mendel
