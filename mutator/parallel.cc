#include "mutator/parallel.h"

#include <algorithm>

#include "base/check.h"

namespace mendel {
namespace {

constexpr size_t kMaxNodes = 8192;

}  // namespace

Reachability::Reachability(const Graph& graph) {
  const size_t count = graph.nodes().size();
  if (count > kMaxNodes) return;
  ancestors_.assign(count, std::vector<bool>(count, false));
  for (size_t i = 0; i < count; ++i) {
    for (ValueId value : graph.nodes()[i].inputs) {
      const size_t producer = static_cast<size_t>(value.node);
      ancestors_[i][producer] = true;
      for (size_t j = 0; j < producer; ++j) {
        if (ancestors_[producer][j]) ancestors_[i][j] = true;
      }
    }
  }
}

std::vector<std::vector<int32_t>> IndependentGroups(const Graph& graph, const std::vector<int32_t>& candidates) {
  std::vector<std::vector<int32_t>> groups;
  if (candidates.size() < 2) return groups;
  const Reachability reach(graph);
  if (!reach.known()) return groups;
  for (int32_t candidate : candidates) {
    const bool fits = !groups.empty() && std::none_of(groups.back().begin(), groups.back().end(),
                                                      [&](int32_t member) { return reach.Depends(candidate, member); });
    if (!fits) groups.emplace_back();
    groups.back().push_back(candidate);
  }
  std::erase_if(groups, [](const auto& group) { return group.size() < 2; });
  return groups;
}

ValueId OperandOf(const Graph& subprogram, ValueId value, const std::vector<ValueId>& inputs) {
  const auto place = std::find(subprogram.inputs().begin(), subprogram.inputs().end(), value.node);
  MENDEL_CHECK(place != subprogram.inputs().end());
  return inputs[static_cast<size_t>(place - subprogram.inputs().begin())];
}

bool IsWeight(const Graph& graph, ValueId value) {
  const Node& node = graph.node(value.node);
  if (IsInput(node)) return false;
  return std::all_of(node.inputs.begin(), node.inputs.end(), [&](ValueId input) { return IsWeight(graph, input); });
}

}  // namespace mendel
