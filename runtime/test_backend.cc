#include "runtime/test_backend.h"

#include <cstring>
#include <memory>
#include <utility>

#include "base/status.h"
#include "graph/evaluate.h"
#include "runtime/backend.h"

namespace mendel {
namespace {

class TestExecutable final : public Executable {
 public:
  explicit TestExecutable(Graph graph) : graph_(std::move(graph)) {}

  absl::Status Run(std::span<const std::span<const std::byte>> inputs,
                   std::span<const std::span<std::byte>> outputs) override {
    if (inputs.size() != graph_.inputs().size() || outputs.size() != graph_.outputs().size()) {
      return InvalidInput("wrong number of buffers");
    }
    std::vector<HostValue> values;
    for (size_t k = 0; k < inputs.size(); ++k) {
      const TensorType& type = graph_.type({graph_.inputs()[k], 0});
      if (static_cast<int64_t>(inputs[k].size()) != ByteSize(type))
        return InvalidInput("input ", k, " has the wrong size");
      values.push_back(HostValue::FromTensor(
          Tensor(type, std::vector<std::byte>(inputs[k].begin(), inputs[k].end()))));
    }
    MENDEL_ASSIGN_OR_RETURN(const std::vector<HostValue> results, Evaluate(graph_, values));
    for (size_t k = 0; k < results.size(); ++k) {
      const Tensor tensor = results[k].ToTensor();
      if (tensor.bytes().size() != outputs[k].size())
        return InvalidInput("output ", k, " has the wrong size");
      std::memcpy(outputs[k].data(), tensor.bytes().data(), outputs[k].size());
    }
    return absl::OkStatus();
  }
  const std::vector<Step>& steps() const override { return steps_; }
  absl::Status RunTimed(std::span<const std::span<const std::byte>> inputs,
                        std::span<const std::span<std::byte>> outputs,
                        std::vector<double>& seconds) override {
    seconds.clear();
    return Run(inputs, outputs);
  }
  MemoryReport memory() const override { return {.arena_bytes = 64, .alive_bytes = 64}; }

 private:
  Graph graph_;
  std::vector<Step> steps_;
};

class TestBackend final : public Backend {
 public:
  std::string_view name() const override { return kTestBackend; }
  absl::Status Probe() const override { return absl::OkStatus(); }
  std::string Identity() const override { return kTestIdentity; }
  std::vector<std::string> Algorithms(const Graph&, int32_t, Numerics) const override { return {}; }
  absl::StatusOr<std::unique_ptr<Executable>> Compile(
      const Graph& graph, const CompileOptions& options) const override {
    for (const auto& [node, name] : options.algorithms) {
      const auto engine = options.engines.find(node);
      if (engine == options.engines.end())
        return InvalidInput("node ", node, " has no algorithm '", name, "' here");
      if (engine->second.library == kTestLibrary) continue;
      return InvalidInput("the engine of node ", node, " is of '", engine->second.library,
                          "', and this is '", kTestLibrary, "'");
    }
    return std::make_unique<TestExecutable>(graph);
  }
};

const Backend* Make() {
  static const TestBackend backend;
  return &backend;
}

MENDEL_REGISTER_BACKEND(&Make);

}  // namespace
}  // namespace mendel
