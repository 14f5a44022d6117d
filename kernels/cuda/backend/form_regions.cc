#include "kernels/cuda/backend/form_regions.h"

#include "graph/rewrite.h"
#include "kernels/cuda/backend/format_choice.h"
#include "runtime/kind_regions.h"

namespace mendel::cuda {

std::vector<std::vector<int32_t>> FormRegions(const Graph& graph, const std::set<int32_t>& calls) {
  const std::vector<bool> constant = ConstantExpressions(graph);
  const auto passes = [&](int32_t id) {
    return !constant[static_cast<size_t>(id)] && FormRoleOf(graph.node(id)) != FormRole::kNone;
  };
  const auto joins = [&](ValueId value, int32_t reader) {
    if (constant[static_cast<size_t>(value.node)]) return false;
    // Broadcast operands are no reason to compute the rest in their form.
    const Node& node = graph.node(reader);
    const FormRole role = FormRoleOf(node);
    return calls.count(reader) > 0 || role == FormRole::kTurned || role == FormRole::kMove ||
           graph.type(value).shape == node.outputs[0].shape;
  };
  return ConnectedCalls(graph, calls, passes, joins);
}

}  // namespace mendel::cuda
