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

WeightView Folded::View(ValueId value) {
  const Node& node = graph_.node(value.node);
  if (!mendel::IsConstant(node)) return Evaluated(value.node)[static_cast<size_t>(value.output)].scalars;
  const Tensor& stored = ConstantValue(node);
  if (stored.dtype() == DType::kF32) return stored.As<float>();
  const auto known = evaluated_.try_emplace(value.node).first;
  if (known->second.empty()) known->second = {HostValue::FromTensor(stored)};
  return known->second[0].scalars;
}

const std::vector<HostValue>& Folded::Evaluated(int32_t node) {
  if (const auto known = evaluated_.find(node); known != evaluated_.end()) return known->second;
  const std::vector<ValueId>& inputs = graph_.node(node).inputs;
  std::vector<HostValue> stored(inputs.size());
  std::vector<const HostValue*> pointers;
  for (size_t k = 0; k < inputs.size(); ++k) {
    const Node& source = graph_.node(inputs[k].node);
    if (mendel::IsConstant(source)) {
      stored[k] = HostValue::FromTensor(ConstantValue(source));
      pointers.push_back(&stored[k]);
    } else {
      pointers.push_back(&Evaluated(inputs[k].node)[static_cast<size_t>(inputs[k].output)]);
    }
  }
  std::vector<HostValue> outputs =
      WithView(graph_, node, [&](const NodeView& view) { return EvaluateNode(*graph_.node(node).op, view, pointers); });
  return evaluated_.emplace(node, std::move(outputs)).first->second;
}

}  // namespace mendel::cpu
