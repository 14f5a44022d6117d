#include "optimizer/stored_values.h"

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "base/status.h"
#include "base/work.h"
#include "graph/rewrite.h"
#include "mutator/rule.h"

namespace mendel {
namespace {

bool IsStoredWeight(const Node& node) {
  return IsConstant(node) && !SymbolName(node).empty() && node.outputs[0].dtype == DType::kF32 &&
         !node.outputs[0].shape.empty();
}

/// A copy in which weights that `chosen` names are literals; `copied` gets the new number of every
/// node.
absl::StatusOr<Graph> WithLiterals(const Graph& graph,
                                   const std::function<bool(const Node&)>& chosen,
                                   std::vector<int32_t>& copied) {
  GraphBuilder builder(graph.name());
  copied.clear();
  for (const Node& node : graph.nodes()) {
    if (IsInput(node)) {
      copied.push_back(builder.Input(InputName(node), node.outputs[0]).node);
    } else if (IsStoredWeight(node) && chosen(node)) {
      copied.push_back(builder.Constant(ConstantValue(node)).node);
    } else if (IsConstant(node)) {
      copied.push_back(builder.Constant(ConstantValue(node), SymbolName(node)).node);
    } else {
      std::vector<ValueId> inputs = node.inputs;
      for (ValueId& input : inputs) input.node = copied[static_cast<size_t>(input.node)];
      MENDEL_ASSIGN_OR_RETURN(const int32_t copy, builder.CopyNode(node, std::move(inputs)));
      copied.push_back(copy);
    }
  }
  for (const GraphOutput& output : graph.outputs())
    builder.Output(output.name,
                   {copied[static_cast<size_t>(output.value.node)], output.value.output});
  return builder.Build();
}

/// The constants that weight expressions read. Each node is visited once for all of them.
class ConstantsRead {
 public:
  explicit ConstantsRead(const Graph& graph) : graph_(graph), seen_(graph.nodes().size()) {}

  void Add(ValueId value) {
    std::vector<int32_t> open = {value.node};
    while (!open.empty()) {
      const int32_t id = open.back();
      open.pop_back();
      if (seen_[static_cast<size_t>(id)] || !graph_.constant()[static_cast<size_t>(id)]) continue;
      seen_[static_cast<size_t>(id)] = true;
      CountWork();
      if (IsConstant(graph_.node(id))) found_.insert(id);
      for (const ValueId input : graph_.node(id).inputs) open.push_back(input.node);
    }
  }
  std::set<int32_t> Take() { return std::move(found_); }

 private:
  const Graph& graph_;
  std::vector<bool> seen_;
  std::set<int32_t> found_;
};

/// Constants that operators in matches of rules that read values have for operands.
std::set<int32_t> UsefulConstants(const Graph& graph, const std::set<std::string>& disabled,
                                  const Deadline& deadline) {
  ConstantsRead useful(graph);
  for (const Rule* rule : AllRules()) {
    if (!rule->reads_values || disabled.count(std::string(rule->name)) > 0) continue;
    for (int32_t id = 0; id < static_cast<int32_t>(graph.nodes().size()); ++id) {
      if (deadline.Passed()) return {};
      for (const Match& match : rule->match(graph, id, DefaultPredictor())) {
        for (int32_t matched : match.nodes) {
          for (ValueId operand : graph.node(matched).inputs) useful.Add(operand);
        }
      }
    }
  }
  return useful.Take();
}

}  // namespace

absl::StatusOr<Graph> WithUsefulLiterals(const Graph& graph, const std::set<std::string>& disabled,
                                         std::set<std::string>& names, const Deadline& deadline) {
  names.clear();
  if (std::none_of(graph.nodes().begin(), graph.nodes().end(), &IsStoredWeight)) return graph;
  MENDEL_ASSIGN_OR_RETURN(const Graph needed,
                          Deduplicate(graph));  // so that no number moves when it is copied
  std::vector<int32_t> copied;
  MENDEL_ASSIGN_OR_RETURN(const Graph literal,
                          WithLiterals(
                              needed, [](const Node&) { return true; }, copied));
  const std::set<int32_t> useful = UsefulConstants(literal, disabled, deadline);
  for (size_t id = 0; id < copied.size(); ++id) {
    const Node& node = needed.nodes()[id];
    if (IsStoredWeight(node) && useful.count(copied[id]) > 0) names.insert(SymbolName(node));
  }
  if (names.empty()) return graph;
  return WithLiterals(
      graph, [&](const Node& node) { return names.count(SymbolName(node)) > 0; }, copied);
}

}  // namespace mendel
