// Operators that read or write at run-time indices: Gather, GatherElements, GatherND, OneHot,
// ReverseSequence and the scatters. Any dtype, except that scatters combine numbers only.

#include <cstring>
#include <limits>
#include <utility>

#include "graph/tensor.h"
#include "kernels/cpu/kernels/index.h"
#include "kernels/cpu/kernels/scatter.h"
#include "kernels/cpu/lowering/lower.h"

namespace mendel::cpu {
namespace {

IndexPlace Indices(Lowering& lowering, ValueId value) {
  return {lowering.Plain(value), lowering.type(value).dtype == DType::kI64};
}

/// The operands of node `id`, and room for its result.
IndexedRead ReadOf(Lowering& lowering, int32_t id, ValueId data, ValueId indices) {
  const TensorType& type = lowering.type(data);
  IndexedRead read;
  read.data = lowering.Plain(data);
  read.indices = Indices(lowering, indices);
  read.to = lowering.Allocate({id, 0}, PlainLayout(lowering.shape({id, 0})));
  read.element_bytes = DTypeSize(type.dtype);
  const Tensor invalid = Tensor::Scalar(
      type.dtype, IsFloat(type.dtype) ? std::numeric_limits<double>::quiet_NaN() : 0.0);
  std::memcpy(&read.invalid, invalid.bytes().data(), invalid.bytes().size());
  return read;
}

void EmitRead(Lowering& lowering, int32_t id, const char* name, const IndexedRead& read,
              std::unique_ptr<Kernel> kernel) {
  lowering.Emit({id}, name, std::move(kernel), {read.data, read.indices.place, read.to});
}

struct Scatter {
  ScatterProblem problem;
  std::optional<std::pair<Place, Place>> in_place;
};

/// nullopt when the elements cannot be combined.
std::optional<Scatter> ScatterOf(Lowering& lowering, int32_t id) {
  const Node& node = lowering.graph().node(id);
  const TensorType& type = lowering.type(node.inputs[0]);
  const std::optional<Combination> combination =
      CombinationOf(node.attrs.Str("reduction"), type.dtype);
  if (!combination.has_value()) return std::nullopt;
  Scatter scatter;
  ScatterProblem& p = scatter.problem;
  p.combination = *combination;
  p.dtype = type.dtype;
  p.shape = type.shape;
  p.data = lowering.Plain(node.inputs[0]);
  p.indices = Indices(lowering, node.inputs[1]);
  p.updates = lowering.Plain(node.inputs[2]);
  p.to = lowering.Allocate({id, 0}, PlainLayout(type.shape));
  if (p.data.buffer != p.updates.buffer && p.data.buffer != p.indices.place.buffer)
    scatter.in_place = {p.to, p.data};
  return scatter;
}

void EmitScatter(Lowering& lowering, int32_t id, const Scatter& scatter,
                 std::unique_ptr<Kernel> kernel) {
  const ScatterProblem& p = scatter.problem;
  lowering.Emit({id}, "scatter", std::move(kernel), {p.data, p.indices.place, p.updates, p.to}, 0,
                scatter.in_place);
}

}  // namespace

absl::StatusOr<bool> LowerGather(Lowering& lowering, int32_t id) {
  const Node& node = lowering.graph().node(id);
  const Shape& shape = lowering.shape(node.inputs[0]);
  const auto axis = shape.begin() + node.attrs.Int("axis");
  const IndexedRead read = ReadOf(lowering, id, node.inputs[0], node.inputs[1]);
  EmitRead(lowering, id, "gather", read,
           MakeGatherKernel(read, NumElements(Shape(shape.begin(), axis)), *axis,
                            NumElements(lowering.shape(node.inputs[1])),
                            NumElements(Shape(axis + 1, shape.end()))));
  return true;
}

absl::StatusOr<bool> LowerGatherElements(Lowering& lowering, int32_t id) {
  const Node& node = lowering.graph().node(id);
  const IndexedRead read = ReadOf(lowering, id, node.inputs[0], node.inputs[1]);
  EmitRead(
      lowering, id, "gather elements", read,
      MakeGatherElementsKernel(read, lowering.shape(node.inputs[0]), lowering.shape(node.inputs[1]),
                               static_cast<size_t>(node.attrs.Int("axis"))));
  return true;
}

absl::StatusOr<bool> LowerGatherNd(Lowering& lowering, int32_t id) {
  const Node& node = lowering.graph().node(id);
  const Shape& shape = lowering.shape(node.inputs[0]);
  const Shape& indices = lowering.shape(node.inputs[1]);
  const int64_t batch = node.attrs.Int("batch_dims");
  const int64_t tuple = indices.back();
  TupleGather gather;
  gather.batches = NumElements(Shape(shape.begin(), shape.begin() + batch));
  gather.tuples = NumElements(indices) / tuple / gather.batches;
  gather.addressed = Shape(shape.begin() + batch, shape.begin() + batch + tuple);
  gather.slice = NumElements(Shape(shape.begin() + batch + tuple, shape.end()));
  const IndexedRead read = ReadOf(lowering, id, node.inputs[0], node.inputs[1]);
  EmitRead(lowering, id, "gather tuples", read, MakeGatherTuplesKernel(read, std::move(gather)));
  return true;
}

absl::StatusOr<bool> LowerOneHot(Lowering& lowering, int32_t id) {
  const Node& node = lowering.graph().node(id);
  const Shape& indices = lowering.shape(node.inputs[0]);
  const int64_t axis = node.attrs.Int("axis");
  const IndexedRead read = ReadOf(lowering, id, node.inputs[1], node.inputs[0]);
  EmitRead(lowering, id, "one-hot", read,
           MakeOneHotKernel(read, NumElements(Shape(indices.begin(), indices.begin() + axis)),
                            node.attrs.Int("depth"),
                            NumElements(Shape(indices.begin() + axis, indices.end()))));
  return true;
}

absl::StatusOr<bool> LowerReverseSequence(Lowering& lowering, int32_t id) {
  const Node& node = lowering.graph().node(id);
  const IndexedRead read = ReadOf(lowering, id, node.inputs[0], node.inputs[1]);
  EmitRead(lowering, id, "reverse sequences", read,
           MakeReverseSequenceKernel(read, lowering.shape(node.inputs[0]),
                                     static_cast<size_t>(node.attrs.Int("batch_axis")),
                                     static_cast<size_t>(node.attrs.Int("time_axis"))));
  return true;
}

absl::StatusOr<bool> LowerScatterElements(Lowering& lowering, int32_t id) {
  const Node& node = lowering.graph().node(id);
  const std::optional<Scatter> scatter = ScatterOf(lowering, id);
  if (!scatter.has_value()) return false;
  EmitScatter(lowering, id, *scatter,
              MakeScatterElementsKernel(scatter->problem, lowering.shape(node.inputs[2]),
                                        static_cast<size_t>(node.attrs.Int("axis"))));
  return true;
}

absl::StatusOr<bool> LowerScatterNd(Lowering& lowering, int32_t id) {
  const Node& node = lowering.graph().node(id);
  const Shape& indices = lowering.shape(node.inputs[1]);
  const std::optional<Scatter> scatter = ScatterOf(lowering, id);
  if (!scatter.has_value()) return false;
  EmitScatter(lowering, id, *scatter,
              MakeScatterTuplesKernel(scatter->problem, NumElements(indices) / indices.back(),
                                      indices.back()));
  return true;
}

}  // namespace mendel::cpu
