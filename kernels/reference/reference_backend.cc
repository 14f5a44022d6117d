// The backend "reference": every operator by its own definition, one step a node, in double
// precision rounded once at the outputs. Runs everything that the language can say; slow. It uses
// the process-wide number of threads, so CompileOptions has no effect.

#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "kernels/reference/reference_program.h"
#include "runtime/backend.h"

namespace mendel {
namespace {

class ReferenceExecutable final : public Executable {
 public:
  explicit ReferenceExecutable(const Graph& graph) : program_(graph) {
    for (int32_t id : program_.steps()) {
      const Node& node = graph.node(id);
      const std::string name = node.name.empty() ? Cat(node.op->name, " ", id) : node.name;
      const double flops =
          WithView(graph, id, [&](const NodeView& view) { return CostOf(*node.op, view).flops; });
      steps_.push_back({name, {id}, "definition", flops});
    }
  }

  absl::Status Run(std::span<const std::span<const std::byte>> inputs,
                   std::span<const std::span<std::byte>> outputs) override {
    return RunSteps(inputs, outputs, nullptr);
  }
  absl::Status RunTimed(std::span<const std::span<const std::byte>> inputs,
                        std::span<const std::span<std::byte>> outputs,
                        std::vector<double>& seconds) override {
    return RunSteps(inputs, outputs, &seconds);
  }
  const std::vector<Step>& steps() const override { return steps_; }
  MemoryReport memory() const override { return {.weight_bytes = program_.weight_bytes()}; }

 private:
  absl::Status RunSteps(std::span<const std::span<const std::byte>> inputs,
                        std::span<const std::span<std::byte>> outputs,
                        std::vector<double>* seconds) const {
    const Graph& graph = program_.graph();
    if (inputs.size() != graph.inputs().size() || outputs.size() != graph.outputs().size()) {
      return InvalidInput("expected ", graph.inputs().size(), " input and ", graph.outputs().size(),
                          " output buffers, not ", inputs.size(), " and ", outputs.size());
    }
    for (size_t k = 0; k < outputs.size(); ++k) {
      const GraphOutput& output = graph.outputs()[k];
      if (static_cast<int64_t>(outputs[k].size()) != ByteSize(graph.type(output.value))) {
        return InvalidInput("output '", output.name, "' has ", ByteSize(graph.type(output.value)),
                            " bytes, not ", outputs[k].size());
      }
    }
    std::vector<HostValue> values;
    for (size_t k = 0; k < inputs.size(); ++k) {
      const Node& node = graph.node(graph.inputs()[k]);
      if (static_cast<int64_t>(inputs[k].size()) != ByteSize(node.outputs[0])) {
        return InvalidInput("input '", InputName(node), "' has ", ByteSize(node.outputs[0]),
                            " bytes, not ", inputs[k].size());
      }
      values.push_back(HostValue::FromTensor(Tensor(node.outputs[0], inputs[k], nullptr)));
    }
    MENDEL_ASSIGN_OR_RETURN(const std::vector<HostValue> results, program_.Run(values, seconds));
    for (size_t k = 0; k < results.size(); ++k) {
      const Tensor tensor = results[k].ToTensor();
      if (!tensor.bytes().empty())
        std::memcpy(outputs[k].data(), tensor.bytes().data(), tensor.bytes().size());
    }
    return absl::OkStatus();
  }

  ReferenceProgram program_;
  std::vector<Step> steps_;
};

class ReferenceBackend final : public Backend {
 public:
  std::string_view name() const override { return "reference"; }
  absl::Status Probe() const override { return absl::OkStatus(); }
  std::string Identity() const override { return "reference:f64"; }
  std::vector<std::string> Algorithms(const Graph&, int32_t, Numerics) const override { return {}; }
  absl::StatusOr<std::unique_ptr<Executable>> Compile(const Graph& graph,
                                                      const CompileOptions&) const override {
    return std::make_unique<ReferenceExecutable>(graph);
  }
};

const Backend* Make() {
  static const ReferenceBackend backend;
  return &backend;
}

MENDEL_REGISTER_BACKEND(&Make);

}  // namespace
}  // namespace mendel
