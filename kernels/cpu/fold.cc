#include "kernels/cpu/fold.h"

#include <utility>

#include "graph/rewrite.h"

namespace mendel::cpu {
namespace {

constexpr size_t kLarge = size_t{1} << 20;

}  // namespace

Folded::Folded(const Graph& graph) : graph_(graph), constant_(ConstantExpressions(graph)) {}

const Tensor& Folded::Rounded(ValueId value) {
  const Node& node = graph_.node(value.node);
  if (mendel::IsConstant(node)) return ConstantValue(node);
  if (const auto known = rounded_.find(value); known != rounded_.end()) return known->second;
  Tensor tensor = Evaluated(value.node)[static_cast<size_t>(value.output)].ToTensor();
  // The double precision of large tensors is seldom asked for again, and takes twice the room.
  if (tensor.bytes().size() > kLarge && node.outputs.size() == 1) evaluated_.erase(value.node);
  const Tensor& shared = by_content_.try_emplace(tensor.ContentHash(), tensor).first->second;
  return rounded_.emplace(value, shared).first->second;
}

HostValue Folded::Exact(ValueId value) {
  const Node& node = graph_.node(value.node);
  if (mendel::IsConstant(node)) return HostValue::FromTensor(ConstantValue(node));
  return Evaluated(value.node)[static_cast<size_t>(value.output)];
}

const std::vector<HostValue>& Folded::Evaluated(int32_t node) {
  if (const auto known = evaluated_.find(node); known != evaluated_.end()) return known->second;
  std::vector<HostValue> operands;
  for (ValueId input : graph_.node(node).inputs) operands.push_back(Exact(input));
  std::vector<const HostValue*> pointers;
  for (const HostValue& operand : operands) pointers.push_back(&operand);
  std::vector<HostValue> outputs =
      WithView(graph_, node, [&](const NodeView& view) { return EvaluateNode(*graph_.node(node).op, view, pointers); });
  return evaluated_.emplace(node, std::move(outputs)).first->second;
}

}  // namespace mendel::cpu
