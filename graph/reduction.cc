#include "graph/reduction.h"

#include <algorithm>

#include "base/status.h"

namespace mendel {
namespace {

bool Contains(const Ints& axes, size_t d) {
  return std::binary_search(axes.begin(), axes.end(), static_cast<int64_t>(d));
}

std::optional<AccessPattern> Access(const NodeView& node, AccessPattern::Combine combine) {
  const Ints& axes = node.attrs.IntList("axes");
  const size_t rank = node.outputs[0].shape.size();
  AccessPattern pattern;
  pattern.combine = combine;
  pattern.breaks.resize(rank);
  InputAccess access;
  size_t output_dim = 0;
  for (size_t d = 0; d < node.inputs[0].shape.size(); ++d) {
    DimAccess dim;
    dim.coefficients.assign(rank, 0);
    dim.whole = Contains(axes, d);
    if (!dim.whole) dim.coefficients[output_dim] = 1;
    if (!dim.whole || node.attrs.Int("keepdims") != 0) ++output_dim;
    access.dims.push_back(dim);
  }
  pattern.inputs = {access};
  return pattern;
}

std::optional<Restriction> Restrict(const NodeView& node, const Box& out) {
  return Restriction{{ReducedBox(node.inputs[0].shape, node.attrs.IntList("axes"),
                                 node.attrs.Int("keepdims"), out)},
                     node.attrs};
}

Cost CostOfReduction(const NodeView& node) {
  return {static_cast<double>(NumElements(node.inputs[0])),
          static_cast<double>(ByteSize(node.inputs[0])) +
              static_cast<double>(ByteSize(node.outputs[0]))};
}

OpSample SampleReduction(Rng& rng, DType dtype) {
  const Shape shape = SampleShape(rng, 1, 5, 4);
  Ints axes;
  while (axes.empty()) {
    for (size_t d = 0; d < shape.size(); ++d) {
      if (rng.Flip()) axes.push_back(static_cast<int64_t>(d));
    }
  }
  return {{{dtype, shape}}, {{"axes", axes}, {"keepdims", rng.Between(0, 1)}}, {}};
}

}  // namespace

Reduction::Reduction(const Shape& input, const Ints& axes) {
  const Shape strides = RowMajorStrides(input);
  Shape extents, reduced_strides;
  for (size_t d = 0; d < input.size(); ++d) {
    (Contains(axes, d) ? extents : kept).push_back(input[d]);
    (Contains(axes, d) ? reduced_strides : kept_strides).push_back(strides[d]);
  }
  offsets.resize(static_cast<size_t>(NumElements(extents)));
  Shape index(extents.size(), 0);
  for (int64_t& offset : offsets) {
    offset = 0;
    for (size_t d = 0; d < index.size(); ++d) offset += index[d] * reduced_strides[d];
    NextIndex(extents, index);
  }
}

double ReducedCount(const NodeView& node) {
  double count = 1;
  for (int64_t axis : node.attrs.IntList("axes"))
    count *= static_cast<double>(node.inputs[0].shape[static_cast<size_t>(axis)]);
  return count;
}

absl::StatusOr<Shape> ReducedShape(const Shape& input, const Ints& axes, int64_t keepdims) {
  if (axes.empty()) return InvalidInput("axes must not be empty");
  if (keepdims != 0 && keepdims != 1)
    return InvalidInput("keepdims must be 0 or 1, not ", keepdims);
  for (size_t k = 0; k < axes.size(); ++k) {
    const int64_t least = k == 0 ? 0 : axes[k - 1] + 1;
    if (axes[k] < least || axes[k] >= static_cast<int64_t>(input.size())) {
      return InvalidInput("axes must be increasing and within the rank of ", ShapeString(input),
                          "; axis ", axes[k], " is not");
    }
  }
  Shape shape;
  for (size_t d = 0; d < input.size(); ++d) {
    if (!Contains(axes, d)) {
      shape.push_back(input[d]);
    } else if (keepdims != 0) {
      shape.push_back(1);
    }
  }
  return shape;
}

TypesOr InferReduceAny(std::span<const TensorType> inputs, const Attributes& attrs) {
  MENDEL_ASSIGN_OR_RETURN(
      Shape shape, ReducedShape(inputs[0].shape, attrs.IntList("axes"), attrs.Int("keepdims")));
  return std::vector<TensorType>{{inputs[0].dtype, std::move(shape)}};
}

TypesOr InferReduceNumeric(std::span<const TensorType> inputs, const Attributes& attrs) {
  if (inputs[0].dtype == DType::kBool)
    return InvalidInput("expected numbers, not ", TypeString(inputs[0]));
  return InferReduceAny(inputs, attrs);
}

TypesOr InferReduceFloat(std::span<const TensorType> inputs, const Attributes& attrs) {
  if (!IsFloat(inputs[0].dtype))
    return InvalidInput("expected a float tensor, not ", TypeString(inputs[0]));
  return InferReduceAny(inputs, attrs);
}

Box ReducedBox(const Shape& input, const Ints& axes, int64_t keepdims, const Box& out) {
  Box box = Box::Whole(input);
  size_t output_dim = 0;
  for (size_t d = 0; d < input.size(); ++d) {
    const bool reduced = Contains(axes, d);
    if (!reduced) {
      box.begin[d] = out.begin[output_dim];
      box.end[d] = out.end[output_dim];
    }
    if (!reduced || keepdims != 0) ++output_dim;
  }
  return box;
}

std::optional<AccessPattern> AccessReduceSum(const NodeView& node) {
  return Access(node, AccessPattern::Combine::kSum);
}
std::optional<AccessPattern> AccessReduceOracle(const NodeView& node) {
  return Access(node, AccessPattern::Combine::kOracle);
}

OpDefinition ReduceOp(std::string_view name, OpSample (*sample)(Rng& rng)) {
  OpDefinition op;
  op.name = name;
  op.min_inputs = op.max_inputs = 1;
  op.attributes = {{"axes", Ints(), true}, {"keepdims", int64_t{1}}};
  op.infer = sample == &SampleReduceNumeric ? &InferReduceNumeric : &InferReduceFloat;
  op.cost = &CostOfReduction;
  op.restrict = &Restrict;
  op.access = &AccessReduceOracle;
  op.sample = sample;
  return op;
}

OpSample SampleReduceFloat(Rng& rng) { return SampleReduction(rng, DType::kF32); }
OpSample SampleReduceNumeric(Rng& rng) {
  constexpr DType kOthers[] = {DType::kI64, DType::kI32, DType::kF16, DType::kF64};
  return SampleReduction(rng, rng.Flip() ? DType::kF32 : kOthers[rng.Below(4)]);
}

}  // namespace mendel
