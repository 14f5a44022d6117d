#include "runtime/session.h"

#include <algorithm>
#include <utility>

#include "base/status.h"
#include "runtime/backend_names.h"
#include "runtime/offline_device.h"

namespace mendel {
namespace {

absl::StatusOr<const Backend*> PlansBackend(const plan::PlanInfo& info, bool retune) {
  const Backend* backend = FindBackend(info.target().backend());
  if (backend == nullptr) {
    return InvalidInput("the plan is for backend '", info.target().backend(),
                        "', which this program does not have (", BackendNames(), ")");
  }
  const std::string isa = info.target().isa().empty() ? "" : Cat(" (", info.target().isa(), ")");
  MENDEL_RETURN_IF_ERROR(Annotate(backend->Probe(), Cat("the plan is for ", backend->name(), isa,
                                                        ", which this machine cannot run")));
  if (!retune) MENDEL_RETURN_IF_ERROR(CheckTarget(info, *backend));
  return backend;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Session>> Session::Create(const Plan& plan,
                                                         const SessionOptions& options) {
  if (options.baseline && plan.baseline.nodes().empty())
    return InvalidInput("the plan carries no baseline graph");
  if (options.threads < 0)
    return InvalidInput("the number of threads must be positive, not ", options.threads);
  MENDEL_ASSIGN_OR_RETURN(const Backend* backend, PlansBackend(plan.info, options.retune));
  const plan::Target& target = plan.info.target();
  CompileOptions compile;
  compile.threads = options.threads > 0 ? options.threads : std::max(1, target.threads());
  MENDEL_ASSIGN_OR_RETURN(compile.cpus, CpusFor(*backend, options.affinity, compile.threads));
  MENDEL_ASSIGN_OR_RETURN(compile.numerics, ParseNumerics(target.numerics()));
  const auto& algorithms =
      options.baseline ? plan.info.baseline_algorithms() : plan.info.algorithms();
  if (!options.retune) compile.algorithms.insert(algorithms.begin(), algorithms.end());
  if (!options.retune && !options.baseline) compile.engines = plan.engines;

  std::unique_ptr<Session> session(new Session());
  const Graph& graph = options.baseline ? plan.baseline : plan.graph;
  session->threads_ = compile.threads;
  compile.copy_constants = plan.file == nullptr;
  absl::StatusOr<std::unique_ptr<Executable>> compiled = backend->Compile(graph, compile);
  if (absl::IsInvalidArgument(compiled.status()) && IsUnmeasured(plan.info) &&
      !compile.algorithms.empty()) {
    return InvalidInput(
        "the plan was made offline, and this machine does not have what it names: ",
        std::string(compiled.status().message()),
        "; optimize the model here, or run with --retune to use this machine's default algorithms");
  }
  MENDEL_RETURN_IF_ERROR(compiled.status());
  session->executable_ = *std::move(compiled);
  if (plan.file != nullptr) plan.file->ReleasePages();
  for (int32_t id : graph.inputs())
    session->inputs_.push_back({InputName(graph.node(id)), graph.type({id, 0})});
  for (const GraphOutput& output : graph.outputs())
    session->outputs_.push_back({output.name, graph.type(output.value)});
  return session;
}

absl::StatusOr<std::vector<Tensor>> Session::InOrder(
    const std::map<std::string, Tensor>& inputs) const {
  std::vector<Tensor> ordered;
  for (const ValueInfo& input : inputs_) {
    const auto it = inputs.find(input.name);
    if (it == inputs.end())
      return InvalidInput("input '", input.name, "' of type ", TypeString(input.type),
                          " is missing");
    if (it->second.type() != input.type) {
      return InvalidInput("input '", input.name, "' has type ", TypeString(it->second.type()),
                          " where ", TypeString(input.type), " is expected");
    }
    ordered.push_back(it->second);
  }
  for (const auto& given : inputs) {
    const bool known = std::any_of(inputs_.begin(), inputs_.end(), [&](const ValueInfo& input) {
      return input.name == given.first;
    });
    if (known) continue;
    std::string names;
    for (const ValueInfo& input : inputs_)
      names += Cat(names.empty() ? "'" : ", '", input.name, "'");
    return InvalidInput("the plan has no input '", given.first, "'; its inputs are ", names);
  }
  return ordered;
}

absl::StatusOr<std::vector<Tensor>> Session::Run(const std::map<std::string, Tensor>& inputs) {
  MENDEL_ASSIGN_OR_RETURN(const std::vector<Tensor> ordered, InOrder(inputs));
  std::vector<TensorType> types;
  for (const ValueInfo& output : outputs_) types.push_back(output.type);
  return RunOnTensors(*executable_, types, ordered);
}

absl::Status Session::RunBuffers(std::span<const std::span<const std::byte>> inputs,
                                 std::span<const std::span<std::byte>> outputs) {
  return executable_->Run(inputs, outputs);
}

}  // namespace mendel
