#include "kernels/cuda/backend/horizontal_fusion.h"

#include <algorithm>
#include <vector>

#include "base/status.h"
#include "graph/rewrite.h"
#include "kernels/cuda/emit/correction_plan.h"
#include "kernels/cuda/fusion/grouping.h"
#include "kernels/cuda/fusion/operator_text.h"
#include "kernels/cuda/fusion/side_by_side.h"

namespace mendel::cuda {
namespace {

bool IsElementwise(const Graph& graph, int32_t node) {
  const Node& it = graph.node(node);
  const OperatorText* const text = IsInput(it) ? nullptr : FindOperatorText(it.op->name);
  return text != nullptr && !text->is_row() && text->reads != Reads::kMany;
}

/// By node: whether it is computed from `node`'s values, or they from its.
std::vector<bool> Related(const Graph& graph, int32_t node) {
  std::vector<bool> below(graph.nodes().size(), false), above = below;
  below[static_cast<size_t>(node)] = above[static_cast<size_t>(node)] = true;
  for (int32_t id = node + 1; id < static_cast<int32_t>(below.size()); ++id) {
    const std::vector<ValueId>& inputs = graph.node(id).inputs;
    below[static_cast<size_t>(id)] = std::any_of(inputs.begin(), inputs.end(), [&](ValueId input) {
      return below[static_cast<size_t>(input.node)];
    });
  }
  for (int32_t id = node; id >= 0; --id) {
    if (!above[static_cast<size_t>(id)]) continue;
    for (const ValueId input : graph.node(id).inputs) above[static_cast<size_t>(input.node)] = true;
  }
  for (size_t id = 0; id < below.size(); ++id) below[id] = below[id] || above[id];
  return below;
}

}  // namespace

absl::StatusOr<std::set<int32_t>> TakeHorizontalFusion(const Graph& graph,
                                                       std::map<int32_t, std::string>& algorithms) {
  std::set<int32_t> nodes;
  for (auto it = algorithms.begin(); it != algorithms.end();) {
    if (it->second != kHorizontalFusion) {
      ++it;
      continue;
    }
    const int32_t id = it->first;
    if (id < 0 || id >= static_cast<int32_t>(graph.nodes().size()))
      return InvalidInput("there is no node ", id, " for '", kHorizontalFusion, "'");
    if (!IsElementwise(graph, id)) {
      const Node& node = graph.node(id);
      return InvalidInput("node '", node.name, "' (", node.op->name, " ", id,
                          ") cannot be computed by '", kHorizontalFusion,
                          "': it is not elementwise");
    }
    nodes.insert(id);
    it = algorithms.erase(it);
  }
  return nodes;
}

std::set<int32_t> HorizontalFusionNodes(const Graph& graph) {
  std::vector<bool> elsewhere = ConstantExpressions(graph);
  const CorrectionPlan corrections = PlanCorrections(graph, elsewhere);
  for (const PlannedCorrection& correction : corrections.corrections)
    elsewhere[static_cast<size_t>(correction.patch)] = true;
  const auto groups = GroupsOf(graph, elsewhere, {corrections.unused, corrections.stored});
  if (!groups.ok()) return {};     // compiling says why
  std::map<int32_t, int> results;  // of kernels that may be fused horizontally with others, by node
  for (const FusionGroup& group : *groups) {
    if (MayFuseHorizontally(graph, group)) ++results[group.result.node];
  }
  std::set<int32_t> nodes;
  for (const auto& [node, count] : results) {
    if (!IsElementwise(graph, node)) continue;
    const std::vector<bool> related = Related(graph, node);
    const auto is_company = [&](const auto& other) {
      return !related[static_cast<size_t>(other.first)];
    };
    if (count > 1 || std::any_of(results.begin(), results.end(), is_company)) nodes.insert(node);
  }
  return nodes;
}

bool HorizontalFusionOffers::Has(const Graph& graph, int32_t node) const {
  const std::lock_guard lock(mutex_);
  // Copies of a graph share their nodes, which stay where they are while one of them is kept.
  if (&last_.nodes() != &graph.nodes()) {
    nodes_ = HorizontalFusionNodes(graph);
    last_ = graph;
  }
  return nodes_.count(node) > 0;
}

}  // namespace mendel::cuda
