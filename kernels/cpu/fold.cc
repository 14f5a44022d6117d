#include "kernels/cpu/fold.h"

#include <memory>
#include <span>
#include <utility>

#include "base/check.h"
#include "graph/rewrite.h"
#include "kernels/cpu/copy.h"
#include "kernels/cpu/program.h"

namespace mendel::cpu {
namespace {

constexpr size_t kLarge = size_t{1} << 20;

bool OnlyMoves(const Node& node) { return node.op->name == "Transpose" || node.op->name == "Reshape"; }

/// True for a stored tensor in another order or shape: it needs no doubles, of which large ones (a classifier's) are slow to make.
bool IsMoved(const Graph& graph, ValueId value) {
  const Node* node = &graph.node(value.node);
  if (!OnlyMoves(*node)) return false;
  while (OnlyMoves(*node)) node = &graph.node(node->inputs[0].node);
  return IsConstant(*node);
}

Tensor Transposed(const Tensor& source, const Ints& perm, const TensorType& type) {
  const auto bytes = std::make_shared<AlignedBytes>(ByteSize(type));
  const Shape strides = RowMajorStrides(source.shape());
  StridedCopy copy{{0, 0, {}}, {1, 0, {}}, type.shape, {}, RowMajorStrides(type.shape)};
  for (const int64_t d : perm) copy.from_strides.push_back(strides[static_cast<size_t>(d)]);
  Bindings bindings;
  // Kernels take one kind of pointer; the copy only reads this one.
  bindings.buffers = {const_cast<std::byte*>(source.bytes().data()), bytes->data()};
  const absl::Status copied = MakeCopyKernel({copy}, DTypeSize(type.dtype))->Run(bindings);
  MENDEL_CHECK(copied.ok());  // it has nothing to fail at
  return Tensor(type, std::span<const std::byte>(bytes->data(), static_cast<size_t>(bytes->size())), bytes);
}

Tensor Moved(const Graph& graph, ValueId value) {
  const Node& node = graph.node(value.node);
  if (IsConstant(node)) return ConstantValue(node);
  const Tensor source = Moved(graph, node.inputs[0]);
  if (node.op->name == "Reshape") return source.Reshaped(node.outputs[0].shape);
  return Transposed(source, node.attrs.IntList("perm"), node.outputs[0]);
}

}  // namespace

Folded::Folded(const Graph& graph) : graph_(graph), constant_(ConstantExpressions(graph)) {}

const Tensor& Folded::Rounded(ValueId value) {
  const Node& node = graph_.node(value.node);
  if (mendel::IsConstant(node)) return ConstantValue(node);
  if (const auto known = rounded_.find(value); known != rounded_.end()) return known->second;
  if (IsMoved(graph_, value)) return rounded_.emplace(value, Moved(graph_, value)).first->second;
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
  const bool f32 = graph_.type(value).dtype == DType::kF32;
  if (f32 && IsMoved(graph_, value)) return Rounded(value).As<float>();
  if (!mendel::IsConstant(node)) return Evaluated(value.node)[static_cast<size_t>(value.output)].scalars;
  const Tensor& stored = ConstantValue(node);
  if (f32) return stored.As<float>();
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
