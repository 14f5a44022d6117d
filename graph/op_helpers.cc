#include "graph/op_helpers.h"

#include <algorithm>

#include "base/status.h"

namespace mendel {
namespace {

std::optional<AccessPattern> AccessElementwise(const NodeView& node,
                                               AccessPattern::Combine combine) {
  AccessPattern pattern;
  pattern.combine = combine;
  const size_t rank = node.outputs[0].shape.size();
  for (const TensorType& input : node.inputs)
    pattern.inputs.push_back(BroadcastAccess(input.shape, rank));
  pattern.breaks.resize(rank);
  return pattern;
}

}  // namespace

TypesOr InferBroadcast(std::span<const TensorType> inputs, const Attributes&) {
  TensorType result = inputs[0];
  for (const TensorType& input : inputs.subspan(1)) {
    if (input.dtype != result.dtype) {
      return InvalidInput("operands must have one dtype, not ", DTypeName(result.dtype), " and ",
                          DTypeName(input.dtype));
    }
    const std::optional<Shape> shape = BroadcastShapes(result.shape, input.shape);
    if (!shape.has_value()) {
      return InvalidInput("shapes ", ShapeString(result.shape), " and ", ShapeString(input.shape),
                          " do not broadcast");
    }
    result.shape = *shape;
  }
  return std::vector<TensorType>{result};
}

TypesOr InferBroadcastToBool(std::span<const TensorType> inputs, const Attributes& attrs) {
  MENDEL_ASSIGN_OR_RETURN(std::vector<TensorType> types, InferBroadcast(inputs, attrs));
  types[0].dtype = DType::kBool;
  return types;
}

TypesOr InferSame(std::span<const TensorType> inputs, const Attributes&) {
  return std::vector<TensorType>{inputs[0]};
}

TypesOr InferSameFloat(std::span<const TensorType> inputs, const Attributes&) {
  if (!IsFloat(inputs[0].dtype))
    return InvalidInput("expected a float tensor, not ", TypeString(inputs[0]));
  return std::vector<TensorType>{inputs[0]};
}

Bound BoundOfSelection(const NodeView&, std::span<const Bound> inputs, int,
                       const Arithmetic<Bound>&) {
  Bound worst;
  for (const Bound& input : inputs) worst = Either(worst, input);
  return worst;
}

Box BroadcastBox(const Shape& input, const Box& out) {
  Box box = Box::Whole(input);
  const size_t skip = out.begin.size() - input.size();
  for (size_t d = 0; d < input.size(); ++d) {
    if (input[d] == 1) continue;
    box.begin[d] = out.begin[skip + d];
    box.end[d] = out.end[skip + d];
  }
  return box;
}

std::optional<Restriction> RestrictElementwise(const NodeView& node, const Box& out) {
  Restriction restriction{{}, node.attrs};
  for (const TensorType& input : node.inputs)
    restriction.inputs.push_back(BroadcastBox(input.shape, out));
  return restriction;
}

InputAccess BroadcastAccess(const Shape& input, size_t rank) {
  InputAccess access;
  const size_t skip = rank - input.size();
  for (size_t d = 0; d < input.size(); ++d) {
    DimAccess dim;
    dim.coefficients.assign(rank, 0);
    if (input[d] != 1) dim.coefficients[skip + d] = 1;
    access.dims.push_back(dim);
  }
  return access;
}

std::optional<AccessPattern> AccessElementwiseSum(const NodeView& node) {
  return AccessElementwise(node, AccessPattern::Combine::kSum);
}
std::optional<AccessPattern> AccessElementwiseProduct(const NodeView& node) {
  return AccessElementwise(node, AccessPattern::Combine::kProduct);
}
std::optional<AccessPattern> AccessElementwiseOracle(const NodeView& node) {
  return AccessElementwise(node, AccessPattern::Combine::kOracle);
}

uint32_t LinearInAll(const NodeView& node) { return (1u << node.inputs.size()) - 1; }
uint32_t LinearInFirst(const NodeView&) { return 1; }

Shape SampleShape(Rng& rng, int min_rank, int max_rank, int64_t max_extent) {
  Shape shape(static_cast<size_t>(rng.Between(min_rank, max_rank)));
  for (int64_t& extent : shape) extent = rng.Between(1, max_extent);
  return shape;
}

Shape SampleBroadcastable(Rng& rng, const Shape& shape) {
  Shape result = shape;
  for (int64_t& extent : result) {
    if (rng.Flip(0.3)) extent = 1;
  }
  if (rng.Flip(0.3))
    result.erase(result.begin(),
                 result.begin() + rng.Between(0, static_cast<int64_t>(result.size())));
  return result;
}

OpSample SampleUnary(Rng& rng) { return {{{DType::kF32, SampleShape(rng, 0, 4, 6)}}, {}, {}}; }

OpSample SampleBinary(Rng& rng) {
  const Shape shape = SampleShape(rng, 0, 4, 6);
  OpSample sample{{{DType::kF32, shape}, {DType::kF32, SampleBroadcastable(rng, shape)}}, {}, {}};
  if (rng.Flip()) std::swap(sample.inputs[0], sample.inputs[1]);
  return sample;
}

absl::StatusOr<int64_t> NormalizeAxis(int64_t axis, size_t rank) {
  const int64_t signed_rank = static_cast<int64_t>(rank);
  if (axis < -signed_rank || axis >= signed_rank)
    return InvalidInput("axis ", axis, " is outside the rank ", signed_rank);
  return axis < 0 ? axis + signed_rank : axis;
}

}  // namespace mendel
