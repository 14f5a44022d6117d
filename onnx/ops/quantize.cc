// QuantizeLinear, DynamicQuantizeLinear and DequantizeLinear in terms of what they mean: scale,
// round half to even, shift, clamp, and back.

#include <numeric>
#include <utility>

#include "onnx/ops/quantized.h"
#include "onnx/tensor_decode.h"

namespace mendel {

ValueId Quantized(Formula& f, ValueId x, std::optional<ValueId> zero, DType dtype) {
  x = f.Op("Round", {x});
  // f16 and bf16 hold no codes of 16 bits.
  if (DTypeSize(f.dtype(x)) <= DTypeSize(dtype)) x = f.Cast(x, DType::kF32);
  if (zero.has_value()) x = f.Add(x, f.Cast(*zero, f.dtype(x)));
  const double low = static_cast<double>(LowestInteger(dtype));
  const double high = static_cast<double>(HighestInteger(dtype));
  return f.Cast(f.Op("Clip", {x}, {{"min", low}, {"max", high}}), dtype);
}

ValueId Converted(Formula& f, ValueId x, DType dtype, bool saturates) {
  if (!IsFloat8(dtype)) return f.Cast(x, dtype);
  if (f.dtype(x) == dtype) return x;
  if (!IsFloat(f.dtype(x)) || IsFloat8(f.dtype(x))) x = f.Cast(x, DType::kF32);
  const double largest = LargestFloat8(dtype);
  if (saturates) x = f.Op("Clip", {x}, {{"min", -largest}, {"max", largest}});
  return f.Cast(x, dtype);
}

DynamicRange RangeOf(Formula& f, ValueId x, double least_scale) {
  Ints axes(f.shape(x).size());
  std::iota(axes.begin(), axes.end(), 0);
  const ValueId zero = f.Scalar(x, 0);
  const auto extreme = [&](std::string_view reduce, std::string_view with_zero) {
    ValueId y = x;
    if (!axes.empty()) y = f.Op(reduce, {x}, {{"axes", axes}, {"keepdims", int64_t{0}}});
    return f.Op(with_zero, {y, zero});
  };
  const ValueId low = extreme("ReduceMin", "Min"), high = extreme("ReduceMax", "Max");
  ValueId scale = f.Div(f.Sub(high, low), f.Scalar(x, 255));
  if (least_scale > 0) scale = f.Op("Max", {scale, f.Scalar(x, least_scale)});
  const ValueId clipped =
      f.Op("Clip", {f.Sub(zero, f.Div(low, scale))}, {{"min", 0.0}, {"max", 255.0}});
  return {scale, f.Op("Round", {clipped})};
}

namespace lowerings::quantize {
namespace {

/// Scales or zero points, of rank 0, 1 or that of x.
struct Granularity {
  int64_t axis = 0;
  int64_t block = 0;
};

Granularity ReadGranularity(OpContext& op) { return {op.Int("axis", 1), op.Int("block_size", 0)}; }

/// A parameter for each block along the axis, repeated for the block's positions.
ValueId Repeated(Formula& f, ValueId value, const Shape& x, size_t axis, int64_t block) {
  Shape shape = f.shape(value);
  const int64_t blocks = shape[axis];
  if (blocks * block < x[axis] || (blocks - 1) * block >= x[axis]) {
    f.Fail(InvalidInput(blocks, " blocks of ", block, " do not cover an extent of ", x[axis]));
    return value;
  }
  Shape wide = shape;
  wide.insert(wide.begin() + static_cast<int64_t>(axis) + 1, 1);
  value = f.Reshape(value, wide);
  wide[axis + 1] = block;
  value = f.Expand(value, wide);
  shape[axis] = blocks * block;
  return f.Slice(f.Reshape(value, shape), static_cast<int64_t>(axis), 0, x[axis]);
}

/// Scale or zero point, shaped to broadcast against input 0.
ValueId Parameter(OpContext& op, Formula& f, int k, const Granularity& granularity) {
  const ValueId value = op.In(k);
  const Shape x = op.shape(op.In(0)), shape = op.shape(value);
  if (NumElements(shape) == 1 && granularity.block == 0) return f.Reshape(value, {});
  const auto axis = op.Axis(granularity.axis, static_cast<int64_t>(x.size()));
  f.Fail(axis.status());
  if (!f.ok()) return value;
  const size_t d = static_cast<size_t>(*axis);
  if (granularity.block == 0 && shape == Shape{x[d]}) {
    Shape along(x.size(), 1);
    along[d] = x[d];
    return f.Reshape(value, along);
  }
  Shape other = shape;
  if (other.size() == x.size()) other[d] = x[d];
  if (granularity.block < 1 || other != x) {
    f.Fail(InvalidInput("input ", k, " must have one element, ", x[d],
                        " elements, or one a block of ", ShapeString(x), ", not ",
                        ShapeString(shape)));
    return value;
  }
  return Repeated(f, value, x, d, granularity.block);
}

/// The dtype that attribute `name` states, else `otherwise`.
DType DTypeAttribute(OpContext& op, Formula& f, std::string_view name, DType otherwise) {
  const int64_t given = op.Int(name, 0);
  if (given == 0) return otherwise;
  const auto dtype = DTypeFromOnnx(static_cast<int32_t>(given));
  f.Fail(dtype.status());
  return dtype.ok() ? *dtype : otherwise;
}

/// Zero points of 8-bit floats are zeros.
absl::Status CheckNoShift(OpContext& op, int k) {
  const Tensor* zero = op.ConstantOf(op.In(k));
  bool all = zero != nullptr;
  for (int64_t i = 0; all && i < zero->size(); ++i) all = zero->DoubleAt(i) == 0;
  return all ? absl::OkStatus()
             : Unsupported("a zero point of type ", DTypeName(op.type(op.In(k)).dtype),
                           " must be the constant 0");
}

/// (x - zero point) * scale; the difference in 64 bits, where it cannot wrap.
absl::Status ImportDequantizeLinear(OpContext& op) {
  Formula f(op);
  const Granularity granularity = ReadGranularity(op);
  ValueId scale = Parameter(op, f, 1, granularity);
  const DType dtype = DTypeAttribute(op, f, "output_dtype", f.dtype(scale));
  ValueId x = op.In(0);
  if (op.Has(2) && IsFloat8(op.type(op.In(2)).dtype)) {
    MENDEL_RETURN_IF_ERROR(CheckNoShift(op, 2));
  } else if (op.Has(2)) {
    const DType wide = op.type(x).dtype == DType::kI32 ? DType::kI64 : DType::kI32;
    x = f.Sub(f.Cast(x, wide), f.Cast(Parameter(op, f, 2, granularity), wide));
  }
  // The product rounds once, in f32 where the result's type does not hold the codes.
  const bool wide = DTypeSize(op.type(op.In(0)).dtype) > 1 && DTypeSize(dtype) == 2;
  const DType computed = wide ? DType::kF32 : dtype;
  f.SetOutput(0, f.Cast(f.Mul(f.Cast(x, computed), f.Cast(scale, computed)), dtype));
  return f.status();
}

/// round(x / scale) + zero point, clamped to what the type holds.
absl::Status ImportQuantizeLinear(OpContext& op) {
  Formula f(op);
  const Granularity granularity = ReadGranularity(op);
  const DType dtype =
      DTypeAttribute(op, f, "output_dtype", op.Has(2) ? op.type(op.In(2)).dtype : DType::kU8);
  const bool to_float8 = IsFloat8(dtype), saturates = op.Int("saturate", 1) != 0;
  if ((IsFloat(dtype) && !to_float8) || DTypeSize(dtype) > 2 || dtype == DType::kBool)
    return Unsupported("quantization to ", DTypeName(dtype), " is not supported");
  ValueId scale = Parameter(op, f, 1, granularity);
  const DType precision = DTypeAttribute(op, f, "precision", f.dtype(scale));
  const ValueId quotient = f.Div(f.Cast(op.In(0), precision), f.Cast(scale, precision));
  if (to_float8) {
    if (op.Has(2)) MENDEL_RETURN_IF_ERROR(CheckNoShift(op, 2));
    f.SetOutput(0, Converted(f, quotient, dtype, saturates));
    return f.status();
  }
  std::optional<ValueId> zero;
  if (op.Has(2)) zero = Parameter(op, f, 2, granularity);
  f.SetOutput(0, Quantized(f, quotient, zero, dtype));
  return f.status();
}

/// scale = (max(x, 0) - min(x, 0)) / 255, zero point = round(-min(x, 0) / scale), both of the whole
/// tensor; then as QuantizeLinear. The scale of a tensor of zeros is zero, and its codes have no
/// meaning.
absl::Status ImportDynamicQuantizeLinear(OpContext& op) {
  Formula f(op);
  const ValueId x = op.In(0);
  const DynamicRange range = RangeOf(f, x);
  const ValueId shift = f.Cast(range.shift, DType::kU8);
  f.SetOutput(0, Quantized(f, f.Div(x, range.scale), shift, DType::kU8));
  f.SetOutput(1, range.scale);
  f.SetOutput(2, shift);
  return f.status();
}

const OpImportRegistrar registrar({
    {"DequantizeLinear", 2, 3, &ImportDequantizeLinear},
    {"DynamicQuantizeLinear", 1, 1, &ImportDynamicQuantizeLinear},
    {"QuantizeLinear", 2, 3, &ImportQuantizeLinear},
});

}  // namespace
}  // namespace lowerings::quantize
}  // namespace mendel
