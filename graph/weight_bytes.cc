#include "graph/weight_bytes.h"

#include <set>
#include <vector>

#include "graph/rewrite.h"

namespace mendel {

int64_t StoredBytes(const Graph& graph) {
  int64_t bytes = 0;
  for (const Node& node : graph.nodes()) {
    if (IsConstant(node)) bytes += ByteSize(node.outputs[0]);
  }
  return bytes;
}

int64_t MadeWeightBytes(const Graph& graph) {
  const std::vector<bool> constant = ConstantExpressions(graph);
  std::set<ValueId> made;
  const auto note = [&](ValueId value) {
    while (graph.node(value.node).op->is_view) value = graph.node(value.node).inputs[0];
    if (constant[static_cast<size_t>(value.node)] && !IsConstant(graph.node(value.node)))
      made.insert(value);
  };
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    if (constant[i]) continue;
    for (const ValueId input : graph.nodes()[i].inputs) note(input);
  }
  for (const GraphOutput& output : graph.outputs()) note(output.value);
  int64_t bytes = 0;
  for (const ValueId value : made) bytes += ByteSize(graph.type(value));
  return bytes;
}

}  // namespace mendel
