#include "verifier/certify/shared_values.h"

#include <utility>

#include "base/status.h"

namespace mendel {

std::vector<bool> OutputCone(const Graph& graph, size_t first, size_t last) {
  std::vector<bool> cone(graph.nodes().size(), false);
  for (size_t k = first; k < last; ++k)
    cone[static_cast<size_t>(graph.outputs()[k].value.node)] = true;
  for (size_t i = graph.nodes().size(); i-- > 0;) {
    if (!cone[i]) continue;
    for (ValueId value : graph.nodes()[i].inputs) cone[static_cast<size_t>(value.node)] = true;
  }
  return cone;
}

absl::StatusOr<std::optional<Graph>> CutAtSharedValues(const Graph& joint) {
  const size_t count = joint.outputs().size() / 2;
  const std::vector<bool> f = OutputCone(joint, 0, count);
  const std::vector<bool> g = OutputCone(joint, count, joint.outputs().size());
  const size_t size = joint.nodes().size();
  std::vector<bool> shared(size, false);
  std::vector<bool> cut(size, false);
  for (size_t i = 0; i < size; ++i) {
    const Node& node = joint.nodes()[i];
    const bool computed = !IsInput(node) && !IsConstant(node) && node.outputs.size() == 1 &&
                          IsFloat(node.outputs[0].dtype);
    shared[i] = computed && f[i] && g[i];
  }
  bool any = false;
  const auto read_by = [&](ValueId value, bool by_shared) {
    if (!shared[static_cast<size_t>(value.node)] || by_shared) return;
    cut[static_cast<size_t>(value.node)] = true;
    any = true;
  };
  for (size_t i = 0; i < size; ++i) {
    for (ValueId value : joint.nodes()[i].inputs) read_by(value, shared[i] || (f[i] && g[i]));
  }
  for (const GraphOutput& output : joint.outputs()) read_by(output.value, false);
  if (!any) return std::nullopt;
  std::vector<bool> needed(size, false);
  for (const GraphOutput& output : joint.outputs())
    needed[static_cast<size_t>(output.value.node)] = true;
  for (size_t i = size; i-- > 0;) {
    if (!needed[i] || cut[i]) continue;
    for (ValueId value : joint.nodes()[i].inputs) needed[static_cast<size_t>(value.node)] = true;
  }
  GraphBuilder builder(joint.name());
  std::vector<int32_t> where(size, -1);
  for (size_t i = 0; i < size; ++i) {
    const Node& node = joint.nodes()[i];
    if (IsInput(node) || (needed[i] && cut[i])) {
      where[i] =
          builder.Input(IsInput(node) ? InputName(node) : Cat("cut#", i), node.outputs[0]).node;
    } else if (needed[i] && IsConstant(node)) {
      where[i] = builder.Constant(ConstantValue(node), SymbolName(node)).node;
    } else if (needed[i]) {
      std::vector<ValueId> operands;
      for (ValueId value : node.inputs)
        operands.push_back({where[static_cast<size_t>(value.node)], value.output});
      MENDEL_ASSIGN_OR_RETURN(where[i], builder.CopyNode(node, std::move(operands)));
    }
  }
  for (const GraphOutput& output : joint.outputs()) {
    builder.Output(output.name,
                   {where[static_cast<size_t>(output.value.node)], output.value.output});
  }
  MENDEL_ASSIGN_OR_RETURN(Graph graph, builder.Build());
  return std::optional<Graph>(std::move(graph));
}

}  // namespace mendel
