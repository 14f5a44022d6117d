#include "kernels/cpu/lowering/direct_emit.h"

namespace mendel::cpu {
namespace {

/// One float a channel, zeros up to a whole vector.
Place Vector(Lowering& lowering, const std::vector<double>& values, int64_t channels,
             int64_t lanes) {
  return OwnVector(lowering, values, (channels + lanes - 1) / lanes * lanes);
}

}  // namespace

bool IsDirectF32(const Graph& graph, const Node& node) {
  if (node.outputs[0].dtype != DType::kF32 || NumElements(node.outputs[0]) == 0) return false;
  return NumElements(graph.type(node.inputs[0])) > 0 && NumElements(graph.type(node.inputs[1])) > 0;
}

ValueId SourceOf(const Lowering& lowering, const Group& group) {
  return group.prepared.has_value() ? group.prepared->source
                                    : lowering.graph().node(group.nodes[0]).inputs[0];
}

DirectOperands PrepareDirect(Lowering& lowering, const Group& group, const NativeFused& fused,
                             const Layout& src, const Layout& dst, int64_t channels,
                             int64_t lanes) {
  DirectOperands operands;
  operands.src = lowering.In(SourceOf(lowering, group), src);
  if (group.prepared.has_value() && group.prepared->gate.has_value()) {
    operands.factor = lowering.Plain(*group.prepared->gate);
  } else if (group.prepared.has_value()) {
    const PreparedSource& prepared = *group.prepared;
    const int64_t inputs = static_cast<int64_t>(prepared.factor.size());
    operands.factor = Vector(lowering, prepared.factor, inputs, lanes);
    operands.summand = Vector(lowering, prepared.summand, inputs, lanes);
  }
  operands.bias = Vector(lowering, fused.epilogue.bias, channels, lanes);
  if (fused.epilogue.residual.has_value())
    operands.residual = lowering.In(*fused.epilogue.residual, dst);
  operands.dst = lowering.Allocate(ResultOf(group, fused.count), dst);
  return operands;
}

}  // namespace mendel::cpu
