#include "verifier/facts.h"

#include <algorithm>
#include <array>
#include <map>
#include <vector>

#include "base/status.h"
#include "verifier/facts/rules.h"
#include "verifier/facts/terms.h"

namespace mendel {
namespace {

/// In the order in which their rules are tried: first the arrangement that the others expect.
std::vector<FactGroup> Groups() {
  return {ArrangementFacts(), LiteralFacts(),     ArithmeticFacts(), ClipFacts(),       ExtremeFacts(),      PoolFacts(),
          RootFacts(),        ExponentialFacts(), LogicFacts(),      ActivationFacts(), NormalizationFacts()};
}

using RuleTable = std::map<std::string_view, std::vector<const FactRule*>>;

/// Rules for all operators are appended to those of every operator that has some, and are all that the others have.
const RuleTable& Table() {
  static const RuleTable* const table = [] {
    auto* rules = new RuleTable();
    for (const FactGroup& group : Groups()) {
      for (const FactRule& rule : group.rules) (*rules)[rule.op].push_back(&rule);
    }
    const std::vector<const FactRule*> general = (*rules)["*"];
    for (auto& [op, list] : *rules) {
      if (op != "*") list.insert(list.end(), general.begin(), general.end());
    }
    return rules;
  }();
  return *table;
}

}  // namespace

std::span<const FactRule* const> RulesFor(std::string_view op) {
  const RuleTable& table = Table();
  const auto it = table.find(op);
  return it != table.end() ? it->second : table.at("*");
}

std::span<const FactDescription> AllFacts() {
  static const std::vector<FactDescription>* const facts = [] {
    auto* all = new std::vector<FactDescription>();
    for (const FactGroup& group : Groups()) all->insert(all->end(), group.facts.begin(), group.facts.end());
    std::sort(all->begin(), all->end(), [](const auto& a, const auto& b) { return a.name < b.name; });
    return all;
  }();
  return *facts;
}

absl::StatusOr<Graph> Canonicalise(const Graph& graph, WeightMode weights, std::map<std::string, int>* used) {
  Terms terms(graph.name(), weights, used);
  std::vector<std::vector<ValueId>> where(graph.nodes().size());
  const auto map = [&](ValueId value) { return where[static_cast<size_t>(value.node)][static_cast<size_t>(value.output)]; };
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    const Node& node = graph.nodes()[i];
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
      for (size_t k = 0; k < node.outputs.size(); ++k) where[i].push_back({copy, static_cast<int32_t>(k)});
    }
  }
  for (const GraphOutput& output : graph.outputs()) terms.Output(output.name, map(output.value));
  return terms.Finish();
}

}  // namespace mendel
