#include "verifier/axioms/axioms.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <vector>

#include "base/status.h"
#include "verifier/axioms/masked_softmax.h"
#include "verifier/axioms/rules.h"
#include "verifier/axioms/terms.h"

namespace mendel {
namespace {

/// In the order in which their rules are tried: first integers, which have a form
/// of their own, then the arrangement that the others expect.
std::vector<AxiomGroup> Groups() {
  return {IntegerAxioms(),       ArrangementAxioms(), LiteralExpressionAxioms(),
          LiteralAxioms(),       ArithmeticAxioms(),  ClipAxioms(),
          ExtremeAxioms(),       PoolAxioms(),        RootAxioms(),
          ExponentialAxioms(),   LogicAxioms(),       ActivationAxioms(),
          NormalizationAxioms(), PieceAxioms()};
}

using RuleTable = std::map<std::string_view, std::vector<const AxiomRule*>>;

/// Rules for all operators are appended to those of every operator that has some, and are all that
/// the others have.
const RuleTable& Table() {
  static const RuleTable* const table = [] {
    auto* rules = new RuleTable();
    for (const AxiomGroup& group : Groups()) {
      for (const AxiomRule& rule : group.rules) (*rules)[rule.op].push_back(&rule);
    }
    const std::vector<const AxiomRule*> general = (*rules)["*"];
    for (auto& [op, list] : *rules) {
      if (op != "*") list.insert(list.end(), general.begin(), general.end());
    }
    return rules;
  }();
  return *table;
}

/// A small change of the operands may change the result by much: it rounds, compares, sorts or
/// chooses.
bool Decides(const Node& node, const std::vector<TensorType>& inputs) {
  static const std::set<std::string_view> kSteps = {"Ceil",  "Floor", "Hardmax",        "Mod",
                                                    "Round", "Sign",  "ThresholdedRelu"};
  const auto is_float = [](const TensorType& type) { return IsFloat(type.dtype); };
  if (!std::any_of(inputs.begin(), inputs.end(), is_float)) return false;
  return node.op->opaque || kSteps.contains(node.op->name) ||
         !std::all_of(node.outputs.begin(), node.outputs.end(), is_float);
}

}  // namespace

std::span<const AxiomRule* const> RulesFor(std::string_view op) {
  const RuleTable& table = Table();
  const auto it = table.find(op);
  return it != table.end() ? it->second : table.at("*");
}

std::span<const AxiomDescription> AllAxioms() {
  static const std::vector<AxiomDescription>* const axioms = [] {
    auto* all = new std::vector<AxiomDescription>();
    for (const AxiomGroup& group : Groups())
      all->insert(all->end(), group.axioms.begin(), group.axioms.end());
    std::sort(all->begin(), all->end(),
              [](const auto& a, const auto& b) { return a.name < b.name; });
    return all;
  }();
  return *axioms;
}

std::vector<bool> DecidingNodes(const Graph& graph, const std::set<std::string>& outputs) {
  std::vector<bool> deciding(graph.nodes().size());
  for (const GraphOutput& output : graph.outputs()) {
    if (outputs.contains(output.name)) deciding[static_cast<size_t>(output.value.node)] = true;
  }
  for (size_t i = graph.nodes().size(); i-- > 0;) {
    const Node& node = graph.nodes()[i];
    if (!deciding[i] && !Decides(node, graph.InputTypes(static_cast<int32_t>(i)))) continue;
    deciding[i] = true;
    for (ValueId input : node.inputs) deciding[static_cast<size_t>(input.node)] = true;
  }
  return deciding;
}

absl::StatusOr<Graph> Canonicalize(const Graph& given, WeightMode weights,
                                   std::map<std::string, int>* used,
                                   const std::set<std::string>& deciding_outputs) {
  int masked = 0;
  MENDEL_ASSIGN_OR_RETURN(const Graph graph, WithoutMaskedScores(given, weights, &masked));
  if (used != nullptr && masked > 0) (*used)["masked softmax"] += masked;
  Terms terms(graph.name(), weights, used);
  std::vector<std::vector<ValueId>> where(graph.nodes().size());
  const auto map = [&](ValueId value) {
    return where[static_cast<size_t>(value.node)][static_cast<size_t>(value.output)];
  };
  const std::vector<bool> deciding = DecidingNodes(graph, deciding_outputs);
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    const Node& node = graph.nodes()[i];
    terms.AllowRounding(!deciding[i]);
    std::vector<ValueId> inputs;
    for (ValueId input : node.inputs) inputs.push_back(map(input));
    if (IsInput(node)) {
      where[i] = {terms.Input(InputName(node), node.outputs[0])};
    } else if (IsConstant(node)) {
      where[i] = {terms.Constant(ConstantValue(node), SymbolName(node))};
    } else if (node.outputs.size() == 1) {
      where[i] = {terms.Op(node.op->name, std::move(inputs), node.attrs, node.name)};
    } else {
      const int32_t copy = terms.Copy(node, std::move(inputs));
      for (size_t k = 0; k < node.outputs.size(); ++k)
        where[i].push_back({copy, static_cast<int32_t>(k)});
    }
  }
  for (const GraphOutput& output : graph.outputs()) terms.Output(output.name, map(output.value));
  return terms.Finish();
}

}  // namespace mendel
