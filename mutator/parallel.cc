#include "mutator/parallel.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/check.h"

namespace mendel {
namespace {

/// Nodes from `first` on that `node` depends on.
std::set<int32_t> AncestorsFrom(const Graph& graph, int32_t node, int32_t first) {
  std::set<int32_t> ancestors;
  std::vector<int32_t> open = {node};
  while (!open.empty()) {
    const int32_t id = open.back();
    open.pop_back();
    for (ValueId value : graph.node(id).inputs) {
      if (value.node >= first && ancestors.insert(value.node).second) open.push_back(value.node);
    }
  }
  return ancestors;
}

}  // namespace

std::vector<std::vector<int32_t>> IndependentGroups(const Graph& graph,
                                                    const std::vector<int32_t>& candidates) {
  std::vector<std::vector<int32_t>> groups;
  if (candidates.size() < 2) return groups;
  for (int32_t candidate : candidates) {
    const std::set<int32_t> ancestors = AncestorsFrom(graph, candidate, candidates.front());
    const bool fits = !groups.empty() &&
                      std::none_of(groups.back().begin(), groups.back().end(),
                                   [&](int32_t member) { return ancestors.count(member) > 0; });
    if (!fits) groups.emplace_back();
    groups.back().push_back(candidate);
  }
  std::erase_if(groups, [](const auto& group) { return group.size() < 2; });
  return groups;
}

std::vector<int32_t> GroupEndingAt(const Graph& graph, int32_t node, size_t max_members,
                                   const std::function<bool(int32_t)>& like) {
  std::vector<int32_t> candidates;
  for (int32_t id = node; id >= 0 && candidates.size() < max_members; --id) {
    if (like(id)) candidates.push_back(id);
  }
  std::reverse(candidates.begin(), candidates.end());
  for (std::vector<int32_t>& group : IndependentGroups(graph, candidates)) {
    if (group.back() == node) return std::move(group);
  }
  return {};
}

ValueId OperandOf(Emitter& e, const Graph& subprogram, ValueId value,
                  const std::vector<ValueId>& inputs) {
  if (IsWeight(subprogram, value)) return e.CopyConstantExpression(subprogram, value);
  const auto place = std::find(subprogram.inputs().begin(), subprogram.inputs().end(), value.node);
  MENDEL_CHECK(place != subprogram.inputs().end());
  return inputs[static_cast<size_t>(place - subprogram.inputs().begin())];
}

bool IsWeight(const Graph& graph, ValueId value) {
  const Node& node = graph.node(value.node);
  if (IsInput(node)) return false;
  return std::all_of(node.inputs.begin(), node.inputs.end(),
                     [&](ValueId input) { return IsWeight(graph, input); });
}

bool HasRunTimeBias(const Graph& graph, const Node& node) {
  return node.inputs.size() > 2 && !IsWeight(graph, node.inputs[2]);
}

}  // namespace mendel
