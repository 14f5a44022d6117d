#include "mutator/parallel.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/check.h"
#include "base/work.h"

namespace mendel {
namespace {

/// Members of a group, and nodes looked at for one, are no farther apart: the work is linear.
constexpr int32_t kFarthest = 4096;

/// Marks nodes that depend on a member of the current group, in one walk upward.
class DependenceWalk {
 public:
  DependenceWalk(const Graph& graph, int32_t first, int32_t last)
      : graph_(graph), first_(first), depends_(static_cast<size_t>(last - first + 1)) {}

  /// A new group, which begins with `member`: nothing before it depends on it.
  void Begin(int32_t member) {
    begin_ = next_ = member;
    members_ = {member};
  }
  void Add(int32_t member) { members_.insert(member); }
  int32_t begin() const { return begin_; }
  /// `node` is behind all nodes that were asked about.
  bool Depends(int32_t node) {
    for (; next_ <= node; ++next_) {
      CountWork();
      const std::vector<ValueId>& inputs = graph_.node(next_).inputs;
      depends_[static_cast<size_t>(next_ - first_)] =
          std::any_of(inputs.begin(), inputs.end(), [&](ValueId value) {
            return value.node >= begin_ && (members_.count(value.node) > 0 ||
                                            depends_[static_cast<size_t>(value.node - first_)]);
          });
    }
    return depends_[static_cast<size_t>(node - first_)];
  }

 private:
  const Graph& graph_;
  const int32_t first_;
  int32_t begin_ = 0, next_ = 0;
  std::vector<bool> depends_;
  std::set<int32_t> members_;
};

}  // namespace

std::vector<std::vector<int32_t>> IndependentGroups(const Graph& graph,
                                                    const std::vector<int32_t>& candidates) {
  std::vector<std::vector<int32_t>> groups;
  if (candidates.size() < 2) return groups;
  DependenceWalk walk(graph, candidates.front(), candidates.back());
  for (int32_t candidate : candidates) {
    const bool fits =
        !groups.empty() && candidate - walk.begin() <= kFarthest && !walk.Depends(candidate);
    if (fits) {
      walk.Add(candidate);
    } else {
      groups.emplace_back();
      walk.Begin(candidate);
    }
    groups.back().push_back(candidate);
  }
  std::erase_if(groups, [](const auto& group) { return group.size() < 2; });
  return groups;
}

std::vector<std::vector<int32_t>> SiblingGroups(const Graph& graph, const Siblings& siblings) {
  std::map<ValueId, std::vector<std::vector<int32_t>>> classes;
  for (int32_t id = 0; id < static_cast<int32_t>(graph.nodes().size()); ++id) {
    CountWork();
    if (!siblings.takes_part(graph, id)) continue;
    auto& of_value = classes[graph.node(id).inputs[siblings.operand]];
    const auto like = std::find_if(of_value.begin(), of_value.end(), [&](const auto& nodes) {
      CountWork();
      return siblings.alike == nullptr || siblings.alike(graph, nodes.front(), id);
    });
    if (like == of_value.end()) {
      of_value.push_back({id});
    } else {
      like->push_back(id);
    }
  }
  std::vector<std::vector<int32_t>> all;
  for (const auto& [value, of_value] : classes) {
    for (const std::vector<int32_t>& nodes : of_value) {
      for (auto& group : IndependentGroups(graph, nodes)) all.push_back(std::move(group));
    }
  }
  return all;
}

std::vector<int32_t> GroupEndingAt(const Graph& graph, int32_t node, size_t max_members,
                                   const std::function<bool(int32_t)>& like) {
  std::vector<int32_t> candidates;
  const int32_t farthest = std::max(0, node - kFarthest);
  for (int32_t id = node; id >= farthest && candidates.size() < max_members; --id) {
    CountWork();
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
  return graph.constant()[static_cast<size_t>(value.node)];
}

bool HasRunTimeBias(const Graph& graph, const Node& node) {
  return node.inputs.size() > 2 && !IsWeight(graph, node.inputs[2]);
}

}  // namespace mendel
