#include "kernels/cuda/backend/folded_values.h"

namespace mendel::cuda {

Tensor FoldedValues::Of(ValueId value) {
  const Node& node = graph_.node(value.node);
  return IsConstant(node) ? ConstantValue(node)
                          : Evaluated(value.node)[static_cast<size_t>(value.output)].ToTensor();
}

const std::vector<HostValue>& FoldedValues::Evaluated(int32_t id) {
  if (const auto known = evaluated_.find(id); known != evaluated_.end()) return known->second;
  const Node& node = graph_.node(id);
  if (IsConstant(node)) return evaluated_[id] = {HostValue::FromTensor(ConstantValue(node))};
  std::vector<const HostValue*> operands;
  for (ValueId input : node.inputs)
    operands.push_back(&Evaluated(input.node)[static_cast<size_t>(input.output)]);
  return evaluated_[id] = WithView(graph_, id, [&](const NodeView& view) {
           return EvaluateNode(*node.op, view, operands);
         });
}

}  // namespace mendel::cuda
