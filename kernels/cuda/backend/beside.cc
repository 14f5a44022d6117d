#include "kernels/cuda/backend/beside.h"

#include <algorithm>

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
    below[static_cast<size_t>(id)] =
        std::any_of(inputs.begin(), inputs.end(), [&](ValueId input) { return below[static_cast<size_t>(input.node)]; });
  }
  for (int32_t id = node; id >= 0; --id) {
    if (!above[static_cast<size_t>(id)]) continue;
    for (const ValueId input : graph.node(id).inputs) above[static_cast<size_t>(input.node)] = true;
  }
  for (size_t id = 0; id < below.size(); ++id) below[id] = below[id] || above[id];
  return below;
}

}  // namespace

absl::StatusOr<std::set<int32_t>> TakeBeside(const Graph& graph, std::map<int32_t, std::string>& algorithms) {
  std::set<int32_t> nodes;
  for (auto it = algorithms.begin(); it != algorithms.end();) {
    if (it->second != kBeside) {
      ++it;
      continue;
    }
    const int32_t id = it->first;
    if (id < 0 || id >= static_cast<int32_t>(graph.nodes().size()))
      return InvalidInput("there is no node ", id, " for '", kBeside, "'");
    if (!IsElementwise(graph, id)) {
      const Node& node = graph.node(id);
      return InvalidInput("node '", node.name, "' (", node.op->name, " ", id, ") cannot be computed by '", kBeside,
                          "': it is not elementwise");
    }
    nodes.insert(id);
    it = algorithms.erase(it);
  }
  return nodes;
}

std::vector<std::string> BesideAlgorithms(const Graph& graph, int32_t node) {
  // What can be told of the node alone comes first: groups are those of the whole graph.
  if (!IsElementwise(graph, node) || NumElements(graph.node(node).outputs[0]) > kMostElementsBeside) return {};
  std::vector<bool> elsewhere = ConstantExpressions(graph);
  if (elsewhere[static_cast<size_t>(node)]) return {};
  const CorrectionPlan corrections = PlanCorrections(graph, elsewhere);
  for (const PlannedCorrection& correction : corrections.corrections) elsewhere[static_cast<size_t>(correction.patch)] = true;
  const auto groups = GroupsOf(graph, elsewhere, {corrections.unused, corrections.stored});
  if (!groups.ok()) return {};  // compiling says why
  bool is_result = false, has_company = false;
  const std::vector<bool> related = Related(graph, node);
  for (const FusionGroup& group : *groups) {
    if (!MayStandBeside(graph, group)) continue;
    is_result = is_result || group.result.node == node;
    has_company =
        has_company || !related[static_cast<size_t>(group.result.node)] || (group.result.node == node && group.result.output > 0);
  }
  return is_result && has_company ? std::vector<std::string>{std::string(kBeside)} : std::vector<std::string>();
}

}  // namespace mendel::cuda
