#include "verifier/axioms/axioms.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <utility>
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
  return {IntegerAxioms(),     ArrangementAxioms(),   LiteralExpressionAxioms(),
          LiteralAxioms(),     ArithmeticAxioms(),    ClipAxioms(),
          ExtremeAxioms(),     PoolAxioms(),          RootAxioms(),
          ExponentialAxioms(), LogicAxioms(),         CastAxioms(),
          ActivationAxioms(),  NormalizationAxioms(), PieceAxioms(),
          OrderAxioms(),       StepAxioms()};
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
  // f16 and bf16 each hold numbers that the other lacks.
  if (node.op->name == "Cast" && node.attrs.Int("exact") == 0 &&
      node.outputs[0].dtype != inputs[0].dtype &&
      DTypeSize(node.outputs[0].dtype) <= DTypeSize(inputs[0].dtype))
    return true;
  return node.op->opaque || kSteps.contains(node.op->name) ||
         !std::all_of(node.outputs.begin(), node.outputs.end(), is_float);
}

/// Adds the program to `terms`. Where `deciding` is set, by node, no literal is rounded. `where`
/// gets the value in the terms by value of `graph`.
void Rewrite(const Graph& graph, const std::vector<bool>& deciding, Terms& terms,
             std::map<ValueId, ValueId>& where) {
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    const Node& node = graph.nodes()[i];
    const ValueId value{static_cast<int32_t>(i), 0};
    if (!deciding.empty()) terms.AllowRounding(!deciding[i]);
    std::vector<ValueId> inputs;
    for (ValueId input : node.inputs) inputs.push_back(where.at(input));
    if (IsInput(node)) {
      where[value] = terms.Input(InputName(node), node.outputs[0]);
    } else if (IsConstant(node)) {
      where[value] = terms.Constant(ConstantValue(node), SymbolName(node));
    } else if (node.outputs.size() == 1) {
      where[value] = terms.Op(node.op->name, std::move(inputs), node.attrs, node.name);
    } else {
      const int32_t copy = terms.Copy(node, std::move(inputs));
      for (size_t k = 0; k < node.outputs.size(); ++k) {
        const int32_t output = static_cast<int32_t>(k);
        where[{value.node, output}] = {copy, output};
      }
    }
  }
  for (const GraphOutput& output : graph.outputs())
    terms.Output(output.name, where.at(output.value));
}

/// `where` with the numbers that nodes have in the finished graph, which keeps inputs and what
/// outputs are computed of; without other values.
std::map<ValueId, ValueId> Renumbered(const Graph& graph, const Terms& terms,
                                      const std::map<ValueId, ValueId>& where) {
  std::set<int32_t> kept;
  std::vector<int32_t> open;
  for (const GraphOutput& output : graph.outputs()) open.push_back(where.at(output.value).node);
  while (!open.empty()) {
    const int32_t id = open.back();
    open.pop_back();
    if (!kept.insert(id).second) continue;
    for (ValueId input : terms.node({id, 0}).inputs) open.push_back(input.node);
  }
  for (int32_t id : graph.inputs()) kept.insert(where.at({id, 0}).node);
  std::map<int32_t, int32_t> numbers;
  for (int32_t id : kept) numbers.emplace(id, static_cast<int32_t>(numbers.size()));
  std::map<ValueId, ValueId> result;
  for (const auto& [from, to] : where) {
    if (kept.contains(to.node)) result[from] = {numbers.at(to.node), to.output};
  }
  return result;
}

/// Some choice has an infinity, or a value is tested for one.
bool ChoosesInfinities(const Graph& graph) {
  const auto is_infinite = [&](ValueId value) {
    const Node& node = graph.node(value.node);
    return IsConstant(node) && IsFloat(node.outputs[0].dtype) && ConstantValue(node).size() > 0 &&
           std::isinf(ConstantValue(node).DoubleAt(0));
  };
  return std::any_of(graph.nodes().begin(), graph.nodes().end(), [&](const Node& node) {
    const std::string_view op = node.op->name;
    return op == "IsNaN" || op == "IsInf" ||
           (op == "Where" && std::any_of(node.inputs.begin(), node.inputs.end(), is_infinite));
  });
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

absl::StatusOr<Graph> WithChosenInfinities(const Graph& graph, WeightMode weights,
                                           std::map<std::string, int>* used,
                                           std::map<ValueId, ValueId>* copies) {
  Terms terms(graph.name(), weights, used);
  terms.KeepDomain(true);
  terms.AllowRounding(false);
  std::map<ValueId, ValueId> where;
  Rewrite(graph, {}, terms, where);
  if (copies != nullptr) *copies = Renumbered(graph, terms, where);
  return terms.Finish();
}

absl::StatusOr<Graph> Canonicalize(const Graph& given, WeightMode weights,
                                   std::map<std::string, int>* used,
                                   const std::set<std::string>& deciding_outputs,
                                   LiteralFactors factors) {
  MENDEL_ASSIGN_OR_RETURN(const Graph chosen, ChoosesInfinities(given)
                                                  ? WithChosenInfinities(given, weights, used)
                                                  : absl::StatusOr<Graph>(given));
  int masked = 0;
  MENDEL_ASSIGN_OR_RETURN(const Graph graph, WithoutMaskedScores(chosen, weights, &masked));
  if (used != nullptr && masked > 0) (*used)["masked softmax"] += masked;
  Terms terms(graph.name(), weights, used);
  terms.KeepFactors(factors == LiteralFactors::kNumbers);
  std::map<ValueId, ValueId> where;
  Rewrite(graph, DecidingNodes(graph, deciding_outputs), terms, where);
  return terms.Finish();
}

}  // namespace mendel
