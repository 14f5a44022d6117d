#include "client/rebind_plan.h"

#include <map>
#include <memory>
#include <vector>

#include "base/status.h"
#include "optimizer/certificate_proto.h"
#include "optimizer/profile/profile_cache.h"
#include "optimizer/profile/profiler.h"
#include "runtime/backend_names.h"
#include "runtime/offline_device.h"
#include "runtime/plan_kernels.h"

namespace mendel {
namespace {

using Weights = std::map<std::string, Tensor>;

Weights WeightsOf(const Graph& graph) {
  Weights weights;
  for (const Node& node : graph.nodes()) {
    if (IsConstant(node) && !SymbolName(node).empty())
      weights.insert_or_assign(SymbolName(node), ConstantValue(node));
  }
  return weights;
}

/// The first difference between the interfaces, empty when there is none.
std::string InterfaceDifference(const Graph& plan, const Graph& model) {
  if (plan.inputs().size() != model.inputs().size()) {
    return Cat("the plan has ", plan.inputs().size(), " inputs, the model ", model.inputs().size());
  }
  for (size_t i = 0; i < plan.inputs().size(); ++i) {
    const Node& one = plan.node(plan.inputs()[i]);
    const Node& other = model.node(model.inputs()[i]);
    if (InputName(one) != InputName(other) || one.outputs[0] != other.outputs[0]) {
      return Cat("input ", i, " is '", InputName(one), "' ", TypeString(one.outputs[0]),
                 " in the plan and '", InputName(other), "' ", TypeString(other.outputs[0]),
                 " in the model");
    }
  }
  if (plan.outputs().size() != model.outputs().size()) {
    return Cat("the plan has ", plan.outputs().size(), " outputs, the model ",
               model.outputs().size());
  }
  for (size_t i = 0; i < plan.outputs().size(); ++i) {
    const GraphOutput& one = plan.outputs()[i];
    const GraphOutput& other = model.outputs()[i];
    if (one.name != other.name || plan.type(one.value) != model.type(other.value)) {
      return Cat("output ", i, " is '", one.name, "' ", TypeString(plan.type(one.value)),
                 " in the plan and '", other.name, "' ", TypeString(model.type(other.value)),
                 " in the model");
    }
  }
  return "";
}

std::string FirstDifference(const Weights& plan, const Weights& model) {
  for (const auto& [name, tensor] : plan) {
    const auto found = model.find(name);
    if (found == model.end()) return Cat("the model has no weight '", name, "'");
    if (found->second.type() != tensor.type()) {
      return Cat("weight '", name, "' is ", TypeString(tensor.type()), " in the plan and ",
                 TypeString(found->second.type()), " in the model");
    }
  }
  return "";
}

/// Nodes keep their numbers: algorithms are stored by them.
absl::StatusOr<Graph> WithWeights(const Graph& graph, const Weights& weights) {
  GraphBuilder builder(graph.name());
  std::vector<int32_t> copied;
  for (const Node& node : graph.nodes()) {
    if (IsInput(node)) {
      copied.push_back(builder.Input(InputName(node), node.outputs[0]).node);
    } else if (IsConstant(node) && !SymbolName(node).empty()) {
      copied.push_back(builder.Constant(weights.at(SymbolName(node)), SymbolName(node)).node);
    } else {
      std::vector<ValueId> inputs = node.inputs;
      for (ValueId& input : inputs) input.node = copied[static_cast<size_t>(input.node)];
      MENDEL_ASSIGN_OR_RETURN(const int32_t copy, builder.CopyNode(node, std::move(inputs)));
      copied.push_back(copy);
    }
    if (copied.back() != static_cast<int32_t>(copied.size()) - 1)
      return InternalError("rebind: a plan's nodes are not distinct");
  }
  for (const GraphOutput& output : graph.outputs()) builder.Output(output.name, output.value);
  MENDEL_ASSIGN_OR_RETURN(Graph result, builder.Build());
  if (result.nodes().size() != graph.nodes().size())
    return InternalError("rebind: a plan contains nodes that nothing needs");
  return result;
}

Algorithms AlgorithmsOf(const google::protobuf::Map<int32_t, std::string>& stored) {
  return {stored.begin(), stored.end()};
}

absl::StatusOr<GateResult> Gate(const Graph& model, const Plan& plan) {
  const plan::Target& target = plan.info.target();
  // A plan made without its device passed the gate there, and passes it again there, wherever that
  // is.
  std::unique_ptr<OfflineDevice> offline;
  if (IsUnmeasured(plan.info)) {
    MENDEL_ASSIGN_OR_RETURN(offline, MakeOfflineDevice(Cat(target.backend(), ":", target.isa())));
  }
  const Backend* backend = offline != nullptr ? &offline->backend() : FindBackend(target.backend());
  if (backend == nullptr)
    return Unsupported("this program has no backend '", target.backend(), "' (", BackendNames(),
                       ")");
  MENDEL_RETURN_IF_ERROR(CheckTarget(plan.info, *backend));
  MENDEL_ASSIGN_OR_RETURN(const Numerics numerics, ParseNumerics(target.numerics()));
  MENDEL_ASSIGN_OR_RETURN(const auto cache, ProfileCache::Open(":memory:"));
  const Profiler profiler(*backend, *cache, {.threads = target.threads(), .numerics = numerics});
  GateOptions options;
  options.seed = plan.info.search().seed();
  const bool has_baseline = !plan.baseline.nodes().empty();
  return NumericGate(model, {has_baseline ? plan.baseline : model, {}},
                     {plan.graph, AlgorithmsOf(plan.info.algorithms())}, profiler, options);
}

}  // namespace

absl::Status CheckRebindable(const Plan& plan, const Certificate& certificate) {
  if (plan.info.weights() != plan::WEIGHTS_MODE_SYMBOLIC ||
      certificate.weights != WeightMode::kSymbolic) {
    return InvalidInput(
        "the plan holds for its stored weights only (weights: exact): it cannot take others");
  }
  return absl::OkStatus();
}

absl::StatusOr<ReboundPlan> RebindPlan(const Plan& plan, const Graph& model) {
  if (plan.certificate_bytes.empty()) return InvalidInput("the plan carries no certificate");
  MENDEL_ASSIGN_OR_RETURN(const Certificate old, ParseCertificate(plan.certificate_bytes));
  MENDEL_RETURN_IF_ERROR(CheckRebindable(plan, old));
  std::string difference = InterfaceDifference(plan.graph, model);
  const Weights weights = WeightsOf(model);
  if (difference.empty()) difference = FirstDifference(WeightsOf(plan.graph), weights);
  if (difference.empty()) difference = FirstDifference(WeightsOf(plan.baseline), weights);
  if (difference.empty() && GraphHash(model, WeightMode::kSymbolic) != old.original_hash) {
    difference =
        "inputs, outputs and weights are alike, but operators, their attributes or single numbers "
        "are not";
  }
  if (!difference.empty())
    return InvalidInput("the model has another structure than the plan's: ", difference);

  ReboundPlan result;
  result.weights = static_cast<int64_t>(WeightsOf(plan.graph).size());
  result.plan.info = plan.info;
  result.plan.engines = plan.engines;  // they depend on shapes alone
  MENDEL_ASSIGN_OR_RETURN(result.plan.graph, WithWeights(plan.graph, weights));
  MENDEL_ASSIGN_OR_RETURN(result.plan.baseline, WithWeights(plan.baseline, weights));
  MENDEL_ASSIGN_OR_RETURN(result.certificate,
                          Certify(model, result.plan.graph, {.target_log2 = old.bound_log2 + 1}));
  result.plan.certificate_bytes = SerializeCertificate(result.certificate);
  MENDEL_ASSIGN_OR_RETURN(result.gate, Gate(model, result.plan));
  if (!result.gate.passed) {
    return absl::FailedPreconditionError(
        Cat("with the new weights the numeric gate refuses the plan: ", result.gate.failure));
  }
  result.plan.info.clear_numeric();
  for (const plan::NumericResult& output : result.gate.outputs)
    *result.plan.info.add_numeric() = output;
  if (!plan.kernels.empty()) {
    MENDEL_ASSIGN_OR_RETURN(result.plan.kernels, WriteKernels(result.plan.graph));
  }
  return result;
}

}  // namespace mendel
