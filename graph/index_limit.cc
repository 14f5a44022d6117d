#include "graph/index_limit.h"

#include <algorithm>
#include <limits>
#include <variant>
#include <vector>

namespace mendel {
namespace {

/// Extent of the dimension that `node`'s indices run over.
int64_t TableSize(const Graph& graph, const Node& node) {
  const Shape& table = graph.type(node.inputs[0]).shape;
  if (table.empty()) return 1;
  if (node.attrs.Has("time_axis"))
    return table[static_cast<size_t>(node.attrs.Int("time_axis"))] + 1;  // lengths
  if (node.attrs.Has("axis") && std::holds_alternative<int64_t>(node.attrs.Get("axis"))) {
    const int64_t axis = node.attrs.Int("axis");
    if (axis >= 0 && axis < static_cast<int64_t>(table.size()))
      return table[static_cast<size_t>(axis)];
  }
  return *std::min_element(table.begin(), table.end());
}

}  // namespace

std::optional<int64_t> SmallestIndexedTable(const Graph& graph, size_t input) {
  std::vector<bool> derived(graph.nodes().size(), false);
  const size_t source = static_cast<size_t>(graph.inputs()[input]);
  derived[source] = true;
  std::optional<int64_t> limit;
  for (size_t id = source + 1; id < graph.nodes().size(); ++id) {
    const Node& node = graph.nodes()[id];
    for (size_t k = 0; k < node.inputs.size(); ++k) {
      if (!derived[static_cast<size_t>(node.inputs[k].node)] ||
          IsFloat(graph.type(node.inputs[k]).dtype))
        continue;
      const bool indexes = k < 32 && ((node.op->index_inputs >> k) & 1u) != 0 &&
                           graph.type(node.inputs[k]).dtype != DType::kBool;
      if (indexes)
        limit =
            std::min(limit.value_or(std::numeric_limits<int64_t>::max()), TableSize(graph, node));
      // Values that may be the input's own: views, casts, concatenations and the like of integers.
      if (!indexes && IsIntegral(node.outputs[0].dtype) && node.outputs[0].dtype != DType::kBool)
        derived[id] = true;
    }
  }
  return limit;
}

}  // namespace mendel
