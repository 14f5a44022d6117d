#include "client/peers/runtimes.h"

#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/status.h"
#include "client/peers/exchange.h"
#include "client/peers/python.h"
#include "onnx/export.h"
#include "runtime/measure.h"

namespace mendel {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kOpenSeconds = 300;

struct Runtime {
  const char* module;
  const char* name;
};
constexpr Runtime kRuntimes[] = {{"onnxruntime", "ONNX Runtime"}, {"openvino", "OpenVINO"}};

// The first request opens the model, each other one runs it for so many seconds.
constexpr char kWorker[] = R"py(
import json, statistics, sys, time
import numpy

def open_onnxruntime(model, threads, inputs):
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    known = {value.name for value in session.get_inputs()}
    feed = {name: value for name, value in inputs.items() if name in known}
    return lambda: session.run(None, feed)

def open_openvino(model, threads, inputs):
    import openvino
    core = openvino.Core()
    compiled = core.compile_model(core.read_model(model), "CPU", {
        "INFERENCE_NUM_THREADS": threads, "NUM_STREAMS": 1, "INFERENCE_PRECISION_HINT": "f32"})
    known = {name for port in compiled.inputs for name in port.names}
    feed = {name: value for name, value in inputs.items() if name in known}
    request = compiled.create_infer_request()
    return lambda: request.infer(feed)

request = json.loads(sys.stdin.readline())
inputs = {name: numpy.load(file) for name, file in request["inputs"].items()}
run = {"onnxruntime": open_onnxruntime, "openvino": open_openvino}[sys.argv[1]](
    request["model"], request["threads"], inputs)
run()
print(json.dumps({"ready": True}), flush=True)
for line in sys.stdin:
    seconds, times = json.loads(line)["seconds"], []
    run()
    started = time.perf_counter()
    while len(times) < 3 or time.perf_counter() - started < seconds:
        begin = time.perf_counter()
        run()
        times.append(1e3 * (time.perf_counter() - begin))
    print(json.dumps({"median_ms": statistics.median(times)}), flush=True)
)py";

struct Worker {
  std::unique_ptr<PythonProgram> program;
  PeerTimes times;

  void Fail(const absl::Status& status) {
    times.missing = std::string(status.message());
    program = nullptr;
  }
};

Worker OpenRuntime(const Runtime& runtime, const Python& python, const Json& request) {
  Worker worker;
  worker.times.name = runtime.name;
  const auto version = python.versions.find(runtime.module);
  if (version == python.versions.end()) {
    worker.times.missing = python.missing.at(runtime.module);
    return worker;
  }
  worker.times.version = version->second;
  auto program = PythonProgram::Start(python.path, kWorker, {runtime.module},
                                      {{"OMP_NUM_THREADS", request["threads"].dump()}});
  if (!program.ok()) {
    worker.Fail(program.status());
    return worker;
  }
  worker.program = *std::move(program);
  const auto ready = worker.program->Ask(request, kOpenSeconds);
  if (!ready.ok()) worker.Fail(ready.status());
  return worker;
}

void RunRound(Worker& worker, double seconds) {
  if (worker.program == nullptr) return;
  const auto answer = worker.program->Ask({{"seconds", seconds}}, kOpenSeconds + 10 * seconds);
  if (!answer.ok()) return worker.Fail(answer.status());
  worker.times.rounds_ms.push_back((*answer)["median_ms"].get<double>());
}

void SummarizeRounds(PeerTimes& times) {
  if (!times.missing.empty() || times.rounds_ms.empty()) return;
  times.median_ms = Summarize(times.rounds_ms).median_ms;
  const auto [least, most] = std::minmax_element(times.rounds_ms.begin(), times.rounds_ms.end());
  if (times.median_ms > 0) times.spread = (*most - *least) / times.median_ms;
}

/// The first request of every worker. Writes the files that it names.
absl::StatusOr<Json> OpenRequest(const Plan& plan, const PeerOptions& options,
                                 ExchangeFolder& folder) {
  std::map<std::string, Tensor> inputs;
  const std::vector<Tensor> random = RandomInputs(plan.graph, options.seed);
  for (size_t k = 0; k < random.size(); ++k)
    inputs.emplace(InputName(plan.graph.node(plan.graph.inputs()[k])), random[k]);
  Json files = Json::object();
  MENDEL_RETURN_IF_ERROR(folder.Write(inputs, files));
  std::string model = options.model;
  if (model.empty()) {
    if (plan.baseline.nodes().empty())
      return InvalidInput("the plan carries no baseline graph: give the model with --peers-model");
    model = folder.File("baseline.onnx");
    MENDEL_RETURN_IF_ERROR(ExportOnnx(plan.baseline, model));
  }
  return Json{{"model", model}, {"threads", options.threads}, {"inputs", files}};
}

}  // namespace

absl::StatusOr<PeerReport> MeasurePeers(
    const Plan& plan, const PeerOptions& options,
    const std::function<absl::StatusOr<double>(double seconds)>& run_plan) {
  std::vector<std::string> modules;
  for (const Runtime& runtime : kRuntimes) modules.emplace_back(runtime.module);
  MENDEL_ASSIGN_OR_RETURN(const Python python,
                          FindPython(options.python, "--peers-python", modules));
  MENDEL_ASSIGN_OR_RETURN(const auto folder, ExchangeFolder::Make());
  MENDEL_ASSIGN_OR_RETURN(const Json request, OpenRequest(plan, options, *folder));
  std::vector<Worker> workers;
  for (const Runtime& runtime : kRuntimes) workers.push_back(OpenRuntime(runtime, python, request));
  PeerReport report;
  report.model = options.model.empty() ? "the plan's baseline, written as ONNX" : options.model;
  report.python = python.path;
  PeerTimes own;
  own.name = "Mendel";
  const double seconds = options.seconds / options.rounds;
  for (int round = 0; round < options.rounds; ++round) {
    MENDEL_ASSIGN_OR_RETURN(const double median, run_plan(seconds));
    own.rounds_ms.push_back(median);
    for (Worker& worker : workers) RunRound(worker, seconds);
  }
  report.runtimes.push_back(std::move(own));
  for (Worker& worker : workers) report.runtimes.push_back(std::move(worker.times));
  for (PeerTimes& times : report.runtimes) SummarizeRounds(times);
  return report;
}

}  // namespace mendel
