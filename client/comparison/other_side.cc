#include "client/comparison/other_side.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/deadline.h"
#include "base/status.h"
#include "client/model_session.h"
#include "verifier/certify/equivalence_candidates.h"

namespace mendel {
namespace {

/// Limit of the search for values that look equal.
constexpr double kFingerprintSeconds = 120;

std::string NodeName(const Graph& graph, ValueId value) {
  const Node& node = graph.node(value.node);
  const std::string number = Cat("%", value.node, value.output == 0 ? "" : Cat(".", value.output));
  return node.name.empty() ? number : Cat(node.name, " (", number, ")");
}

/// Pairs a value of the model that has a name with the first value of the plan that looks equal.
absl::StatusOr<std::vector<GraphOutput>> LooksEqual(const ComparedModel& model, const Graph& plan,
                                                    uint64_t seed) {
  const Graph& graph = model.imported.graph;
  if (InputShapes(graph) != InputShapes(plan))
    return InvalidInput("the plan's inputs are not in the model's order");
  MENDEL_ASSIGN_OR_RETURN(
      const NumericComparison compared,
      CompareNumerically(graph, plan, seed, Deadline::After(kFingerprintSeconds)));
  std::map<ValueId, std::string> names;
  for (size_t k = model.outputs; k < graph.outputs().size(); ++k)
    names.emplace(graph.outputs()[k].value, graph.outputs()[k].name);
  std::vector<GraphOutput> pairs;
  for (const auto& [ours, theirs] : compared.candidates) {
    const auto name = names.extract(ours);
    if (!name.empty()) pairs.push_back({name.mapped(), theirs});
  }
  return pairs;
}

absl::StatusOr<std::vector<Tensor>> RunPlan(const ComparedModel& model, const Plan& plan,
                                            const SessionOptions& options) {
  MENDEL_ASSIGN_OR_RETURN(const auto session, Session::Create(plan, options));
  return session->Run(model.inputs);
}

/// The plan's program with other outputs, and with its algorithms.
absl::StatusOr<Plan> Rewire(const Plan& plan, const std::vector<GraphOutput>& outputs) {
  MENDEL_ASSIGN_OR_RETURN(const Rewired rewired, WithOutputs(plan.graph, outputs));
  Plan result;
  result.graph = rewired.graph;
  result.info = plan.info;
  result.engines = plan.engines;
  result.file = plan.file;
  result.info.clear_algorithms();
  for (const auto& [node, algorithm] : plan.info.algorithms()) {
    const auto moved = rewired.nodes.find(node);
    if (moved != rewired.nodes.end())
      (*result.info.mutable_algorithms())[moved->second] = algorithm;
  }
  return result;
}

absl::Status AddLayers(const ComparedModel& model, const Plan& plan, SessionOptions options,
                       uint64_t seed, SideValues& side) {
  const auto pairs = LooksEqual(model, plan.graph, seed);
  if (absl::IsDeadlineExceeded(pairs.status())) {
    side.notes.push_back(Cat("no layers: finding equal values took more than ", kFingerprintSeconds,
                             " s; compare with a model or onnxruntime"));
    return absl::OkStatus();
  }
  MENDEL_RETURN_IF_ERROR(pairs.status());
  if (pairs->empty()) return absl::OkStatus();
  MENDEL_ASSIGN_OR_RETURN(const Plan layers, Rewire(plan, *pairs));
  auto values = RunPlan(model, layers, options);
  if (!values.ok()) {
    side.notes.push_back(Cat("the layers ran with default algorithms, not with the plan's: ",
                             std::string(values.status().message())));
    options.retune = true;
    values = RunPlan(model, layers, options);
  }
  MENDEL_RETURN_IF_ERROR(values.status());
  for (size_t k = 0; k < pairs->size(); ++k) {
    const GraphOutput& pair = (*pairs)[k];
    side.values.push_back({pair.name, NodeName(plan.graph, pair.value), (*values)[k]});
  }
  return absl::OkStatus();
}

std::string OutputNames(const Graph& graph, size_t count) {
  std::string names;
  for (size_t k = 0; k < count; ++k)
    names += Cat(names.empty() ? "'" : ", '", graph.outputs()[k].name, "'");
  return names;
}

/// For every output of the model: the name of the other program's.
absl::StatusOr<std::map<std::string, std::string>> PairOutputs(const ComparedModel& model,
                                                               const Graph& other, size_t outputs,
                                                               std::vector<std::string>& notes) {
  const Graph& graph = model.imported.graph;
  std::set<std::string> names;
  for (size_t k = 0; k < outputs; ++k) names.insert(other.outputs()[k].name);
  std::map<std::string, std::string> pairs;
  for (size_t k = 0; k < model.outputs; ++k) {
    const std::string& name = graph.outputs()[k].name;
    if (names.count(name) != 0) pairs.emplace(name, name);
  }
  if (!pairs.empty()) return pairs;
  bool alike = outputs == model.outputs;
  for (size_t k = 0; alike && k < outputs; ++k)
    alike = graph.type(graph.outputs()[k].value) == other.type(other.outputs()[k].value);
  if (!alike) {
    return InvalidInput("no output has the same name and type in both: ",
                        OutputNames(graph, model.outputs), " and ", OutputNames(other, outputs));
  }
  for (size_t k = 0; k < outputs; ++k)
    pairs.emplace(graph.outputs()[k].name, other.outputs()[k].name);
  notes.push_back("no output has the same name in both: they are paired by position");
  return pairs;
}

}  // namespace

absl::StatusOr<Rewired> WithOutputs(const Graph& graph, const std::vector<GraphOutput>& outputs) {
  GraphBuilder builder(graph.name());
  std::vector<int32_t> copies;
  for (const Node& node : graph.nodes()) {
    if (IsInput(node)) {
      copies.push_back(builder.Input(InputName(node), node.outputs[0]).node);
      continue;
    }
    std::vector<ValueId> inputs;
    for (const ValueId input : node.inputs)
      inputs.push_back({copies[static_cast<size_t>(input.node)], input.output});
    MENDEL_ASSIGN_OR_RETURN(const int32_t copy, builder.CopyNode(node, std::move(inputs)));
    copies.push_back(copy);
  }
  std::vector<bool> needed(copies.size(), false);  // as GraphBuilder::Build numbers its nodes
  for (const GraphOutput& output : outputs) {
    const int32_t copy = copies[static_cast<size_t>(output.value.node)];
    builder.Output(output.name, {copy, output.value.output});
    needed[static_cast<size_t>(output.value.node)] = true;
  }
  for (size_t k = copies.size(); k-- > 0;) {
    const Node& node = graph.nodes()[k];
    needed[k] = needed[k] || IsInput(node);
    if (!needed[k]) continue;
    for (const ValueId input : node.inputs) needed[static_cast<size_t>(input.node)] = true;
  }
  Rewired result;
  std::map<int32_t, int32_t> numbers;  // by number in the builder
  for (size_t k = 0; k < copies.size(); ++k) {
    if (!needed[k]) continue;
    const auto number = static_cast<int32_t>(numbers.size());
    result.nodes[static_cast<int32_t>(k)] = numbers.emplace(copies[k], number).first->second;
  }
  MENDEL_ASSIGN_OR_RETURN(result.graph, builder.Build());
  if (result.graph.nodes().size() != numbers.size())
    return InternalError("a graph with other outputs has ", result.graph.nodes().size(),
                         " nodes where ", numbers.size(), " are expected");
  return result;
}

absl::StatusOr<SideValues> ValuesOfPlan(const ComparedModel& model, const Plan& plan,
                                        const SessionOptions& session, uint64_t seed) {
  SideValues side;
  side.runtime = Cat("plan, backend ", plan.info.target().backend());
  MENDEL_ASSIGN_OR_RETURN(const std::vector<Tensor> outputs, RunPlan(model, plan, session));
  MENDEL_ASSIGN_OR_RETURN(const auto pairs,
                          PairOutputs(model, plan.graph, plan.graph.outputs().size(), side.notes));
  for (size_t k = 0; k < outputs.size(); ++k) {
    for (const auto& [ours, theirs] : pairs) {
      if (theirs == plan.graph.outputs()[k].name) side.values.push_back({ours, theirs, outputs[k]});
    }
  }
  if (model.layers) MENDEL_RETURN_IF_ERROR(AddLayers(model, plan, session, seed, side));
  return side;
}

absl::StatusOr<SideValues> ValuesOfModel(const ComparedModel& model, const ImportResult& other,
                                         size_t outputs, const SessionOptions& session) {
  SideValues side;
  side.runtime = "model, backend cpu";
  MENDEL_ASSIGN_OR_RETURN(const Plan plan, BaselinePlan(other));
  MENDEL_ASSIGN_OR_RETURN(const std::vector<Tensor> values, RunPlan(model, plan, session));
  MENDEL_ASSIGN_OR_RETURN(const auto pairs, PairOutputs(model, plan.graph, outputs, side.notes));
  std::map<std::string, const Tensor*> by_name;
  for (size_t k = 0; k < values.size(); ++k) by_name[plan.graph.outputs()[k].name] = &values[k];
  for (const auto& [ours, theirs] : pairs)
    side.values.push_back({ours, theirs, *by_name.at(theirs)});
  const Graph& graph = model.imported.graph;
  for (size_t k = model.outputs; k < graph.outputs().size(); ++k) {
    const auto found = by_name.find(graph.outputs()[k].name);
    if (found == by_name.end()) continue;
    if (found->second->type() != graph.type(graph.outputs()[k].value)) continue;
    side.values.push_back({found->first, found->first, *found->second});
  }
  return side;
}

}  // namespace mendel
