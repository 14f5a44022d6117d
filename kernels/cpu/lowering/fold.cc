#include "kernels/cpu/lowering/fold.h"

#include <memory>
#include <set>
#include <span>
#include <utility>

#include "base/check.h"
#include "base/hash.h"
#include "base/status.h"
#include "graph/rewrite.h"
#include "graph/text.h"
#include "kernels/cpu/kernels/copy.h"
#include "kernels/cpu/program.h"

namespace mendel::cpu {
namespace {

constexpr size_t kLarge = size_t{1} << 20;
constexpr size_t kByContent = 256;       // bytes of a stored tensor that is known by its content
constexpr int64_t kLeastKept = 1 << 14;  // elements of a value that is kept for other programs

bool OnlyMoves(const Node& node) {
  return node.op->name == "Transpose" || node.op->name == "Reshape" || node.op->name == "Slice";
}

/// True for elements of a stored tensor in another order or shape. They need no doubles, which are
/// slow to make of large tensors (a classifier's, or a transposed convolution's cut into its
/// phases).
bool IsMoved(const Graph& graph, ValueId value) {
  const Node* node = &graph.node(value.node);
  if (!OnlyMoves(*node)) return false;
  while (OnlyMoves(*node)) node = &graph.node(node->inputs[0].node);
  return IsConstant(*node);
}

/// Elements of `source`, which lie `strides` elements apart from the first one, `offset` bytes into
/// it.
struct MovedView {
  Tensor source;
  TensorType type;
  int64_t offset = 0;
  Shape strides;
};

MovedView WholeOf(const Tensor& tensor) {
  return {tensor, tensor.type(), 0, RowMajorStrides(tensor.shape())};
}

/// Row-major; the source itself when it is all of it.
Tensor Gathered(const MovedView& view) {
  if (view.type == view.source.type() && view.strides == RowMajorStrides(view.type.shape))
    return view.source;
  const auto bytes = std::make_shared<AlignedBytes>(ByteSize(view.type));
  Tensor gathered(
      view.type,
      std::span<const std::byte>(bytes->data(), static_cast<size_t>(ByteSize(view.type))), bytes);
  if (NumElements(view.type) == 0) return gathered;
  const StridedCopy copy{{0, view.offset, {}},
                         {1, 0, {}},
                         view.type.shape,
                         view.strides,
                         RowMajorStrides(view.type.shape)};
  Bindings bindings;
  // Kernels take one kind of pointer; the copy only reads this one.
  bindings.buffers = {const_cast<std::byte*>(view.source.bytes().data()), bytes->data()};
  const absl::Status copied = MakeCopyKernel({copy}, DTypeSize(view.type.dtype))->Run(bindings);
  MENDEL_CHECK(copied.ok());  // it has nothing to fail at
  return gathered;
}

/// Follows Transposes and Slices, which become one copy together. The copy leaves out elements that
/// Slices drop: phases of one tensor would otherwise copy all of it each.
MovedView Moved(const Graph& graph, ValueId value) {
  const Node& node = graph.node(value.node);
  if (IsConstant(node)) return WholeOf(ConstantValue(node));
  const MovedView from = Moved(graph, node.inputs[0]);
  if (node.op->name == "Reshape") return WholeOf(Gathered(from).Reshaped(node.outputs[0].shape));
  MovedView view{from.source, node.outputs[0], from.offset, {}};
  for (size_t d = 0; d < from.strides.size(); ++d) {
    if (node.op->name == "Transpose") {
      view.strides.push_back(from.strides[static_cast<size_t>(node.attrs.IntList("perm")[d])]);
      continue;
    }
    // A dimension of one element needs no step, which may be beyond any range.
    view.strides.push_back(view.type.shape[d] > 1 ? from.strides[d] * node.attrs.IntList("steps")[d]
                                                  : 0);
    view.offset += node.attrs.IntList("starts")[d] * from.strides[d] * DTypeSize(view.type.dtype);
  }
  return view;
}

}  // namespace

Folded::Folded(const Graph& graph) : graph_(graph), constant_(ConstantExpressions(graph)) {}

const Tensor& Folded::Rounded(ValueId value) {
  const Node& node = graph_.node(value.node);
  if (mendel::IsConstant(node)) return ConstantValue(node);
  if (const auto known = rounded_.find(value); known != rounded_.end()) return known->second;
  if (IsMoved(graph_, value))
    return rounded_.emplace(value, Gathered(Moved(graph_, value))).first->second;
  const std::string key = CacheKey(value);
  if (auto kept = FindRounded(key)) return rounded_.emplace(value, *std::move(kept)).first->second;
  Tensor tensor = (*Evaluated(value.node))[static_cast<size_t>(value.output)].ToTensor();
  if (!key.empty()) KeepRounded(key, tensor, SourcesOf(value.node));
  // The doubles of large tensors are seldom needed again, and take twice the memory.
  if (tensor.bytes().size() > kLarge && node.outputs.size() == 1) evaluated_.erase(value.node);
  const Tensor& shared = by_content_.try_emplace(tensor.ContentHash(), tensor).first->second;
  return rounded_.emplace(value, shared).first->second;
}

HostValue Folded::Exact(ValueId value) {
  const Node& node = graph_.node(value.node);
  if (mendel::IsConstant(node)) return HostValue::FromTensor(ConstantValue(node));
  return (*Evaluated(value.node))[static_cast<size_t>(value.output)];
}

WeightView Folded::View(ValueId value) {
  const Node& node = graph_.node(value.node);
  const bool f32 = graph_.type(value).dtype == DType::kF32;
  if (f32 && IsMoved(graph_, value)) return Rounded(value).As<float>();
  if (f32 && mendel::IsConstant(node)) return ConstantValue(node).As<float>();
  const FoldedValues values = Evaluated(value.node);
  return {(*values)[static_cast<size_t>(value.output)].scalars, values};
}

std::string Folded::CacheKey(ValueId value) {
  const bool kept = NumElements(graph_.type(value)) >= kLeastKept && KeepsFoldedValues();
  return kept ? Cat(KeyOf(value.node), " ", value.output) : "";
}

const std::string& Folded::KeyOf(int32_t id) {
  if (const auto known = keys_.find(id); known != keys_.end()) return known->second;
  const Node& node = graph_.node(id);
  std::string key;
  if (mendel::IsConstant(node)) {
    const Tensor& tensor = ConstantValue(node);
    const bool small = tensor.bytes().size() <= kByContent;
    key = small ? tensor.ContentHash()
                : Cat(reinterpret_cast<uintptr_t>(tensor.bytes().data()), " ",
                      TypeString(tensor.type()));
  } else {
    key = Cat(node.op->name, " ", PrintAttributes(node.attrs));
    for (const TensorType& type : node.outputs) key += Cat(" ", TypeString(type));
    for (ValueId input : node.inputs) key += Cat("\n", KeyOf(input.node), " ", input.output);
  }
  return keys_.emplace(id, Sha256Hex(key)).first->second;
}

std::vector<Tensor> Folded::SourcesOf(int32_t id) const {
  std::vector<Tensor> sources;
  std::set<int32_t> seen = {id};
  std::vector<int32_t> left = {id};
  while (!left.empty()) {
    const Node& node = graph_.node(left.back());
    left.pop_back();
    if (mendel::IsConstant(node)) sources.push_back(ConstantValue(node));
    for (ValueId input : node.inputs) {
      if (seen.insert(input.node).second) left.push_back(input.node);
    }
  }
  return sources;
}

FoldedValues Folded::Evaluated(int32_t node) {
  if (const auto known = evaluated_.find(node); known != evaluated_.end()) return known->second;
  const std::string key = CacheKey({node, 0});
  FoldedValues values = FindFolded(key);
  if (values == nullptr) {
    values = EvaluateNow(node);
    if (!key.empty()) KeepFolded(key, values, SourcesOf(node));
  }
  return evaluated_.emplace(node, std::move(values)).first->second;
}

FoldedValues Folded::EvaluateNow(int32_t node) {
  if (mendel::IsConstant(graph_.node(node))) {
    std::vector<HostValue> stored = {HostValue::FromTensor(ConstantValue(graph_.node(node)))};
    return std::make_shared<const std::vector<HostValue>>(std::move(stored));
  }
  const std::vector<ValueId>& inputs = graph_.node(node).inputs;
  std::vector<HostValue> stored(inputs.size());
  std::vector<const HostValue*> pointers;
  for (size_t k = 0; k < inputs.size(); ++k) {
    const Node& source = graph_.node(inputs[k].node);
    if (mendel::IsConstant(source)) {
      stored[k] = HostValue::FromTensor(ConstantValue(source));
      pointers.push_back(&stored[k]);
    } else {
      pointers.push_back(&(*Evaluated(inputs[k].node))[static_cast<size_t>(inputs[k].output)]);
    }
  }
  std::vector<HostValue> outputs = WithView(graph_, node, [&](const NodeView& view) {
    return EvaluateNode(*graph_.node(node).op, view, pointers);
  });
  return std::make_shared<const std::vector<HostValue>>(std::move(outputs));
}

}  // namespace mendel::cpu
