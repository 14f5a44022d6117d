// QuantizeLinear and DequantizeLinear in terms of what they mean: scale, round half to even, shift, clamp, and back.

#include <utility>

#include "onnx/op_context.h"
#include "onnx/tensor_decode.h"

namespace mendel::lowerings::quantize {
namespace {

/// Scale or zero point: one element for all, or one for each position along the axis, shaped to broadcast against input 0.
absl::StatusOr<ValueId> Parameter(OpContext& op, int k, int64_t axis_attribute) {
  const ValueId value = op.In(k);
  if (NumElements(op.shape(value)) == 1) return op.Reshape(value, {});
  const ValueId x = op.In(0);
  MENDEL_ASSIGN_OR_RETURN(const int64_t axis, op.Axis(axis_attribute, op.rank(x)));
  const int64_t extent = op.shape(x)[static_cast<size_t>(axis)];
  if (op.shape(value) != Shape{extent}) {
    return InvalidInput("input ", k, " must have one element or ", extent, ", not ", ShapeString(op.shape(value)));
  }
  Shape shape(op.shape(x).size(), 1);
  shape[static_cast<size_t>(axis)] = extent;
  return op.Reshape(value, shape);
}

absl::Status RefuseBlocks(OpContext& op) {
  if (op.Int("block_size", 0) != 0) return Unsupported("quantisation in blocks is not supported");
  return absl::OkStatus();
}

/// (x - zero point) * scale; the difference in 32 bits, where it cannot wrap.
absl::Status ImportDequantizeLinear(OpContext& op) {
  MENDEL_RETURN_IF_ERROR(RefuseBlocks(op));
  const int64_t axis = op.Int("axis", 1);
  MENDEL_ASSIGN_OR_RETURN(const ValueId scale, Parameter(op, 1, axis));
  MENDEL_ASSIGN_OR_RETURN(ValueId x, op.Cast(op.In(0), DType::kI32));
  if (op.Has(2)) {
    MENDEL_ASSIGN_OR_RETURN(ValueId zero, Parameter(op, 2, axis));
    MENDEL_ASSIGN_OR_RETURN(zero, op.Cast(zero, DType::kI32));
    MENDEL_ASSIGN_OR_RETURN(x, op.Emit("Sub", {x, zero}));
  }
  MENDEL_ASSIGN_OR_RETURN(x, op.Cast(x, op.type(scale).dtype));
  return op.SetOutput(0, op.Emit("Mul", {x, scale}));
}

absl::StatusOr<DType> QuantizedType(OpContext& op) {
  DType dtype = op.Has(2) ? op.type(op.In(2)).dtype : DType::kU8;
  if (const int64_t given = op.Int("output_dtype", 0); given != 0) {
    MENDEL_ASSIGN_OR_RETURN(dtype, DTypeFromOnnx(static_cast<int32_t>(given)));
  }
  if (dtype != DType::kU8 && dtype != DType::kI8) return Unsupported("quantisation to ", DTypeName(dtype), " is not supported");
  return dtype;
}

/// round(x / scale) + zero point, clamped to what the type holds.
absl::Status ImportQuantizeLinear(OpContext& op) {
  MENDEL_RETURN_IF_ERROR(RefuseBlocks(op));
  op.Ignore("saturate");  // concerns 8-bit floats only
  const int64_t axis = op.Int("axis", 1);
  MENDEL_ASSIGN_OR_RETURN(const DType dtype, QuantizedType(op));
  MENDEL_ASSIGN_OR_RETURN(ValueId scale, Parameter(op, 1, axis));
  MENDEL_ASSIGN_OR_RETURN(ValueId x, op.Cast(op.In(0), op.type(scale).dtype));
  MENDEL_ASSIGN_OR_RETURN(x, op.Emit("Div", {x, scale}));
  MENDEL_ASSIGN_OR_RETURN(x, op.Emit("Round", {x}));
  if (op.Has(2)) {
    MENDEL_ASSIGN_OR_RETURN(ValueId zero, Parameter(op, 2, axis));
    MENDEL_ASSIGN_OR_RETURN(zero, op.Cast(zero, op.type(x).dtype));
    MENDEL_ASSIGN_OR_RETURN(x, op.Emit("Add", {x, zero}));
  }
  const double low = dtype == DType::kU8 ? 0 : -128, high = dtype == DType::kU8 ? 255 : 127;
  MENDEL_ASSIGN_OR_RETURN(x, op.Emit("Clip", {x}, {{"min", low}, {"max", high}}));
  return op.SetOutput(0, op.Cast(x, dtype));
}

const OpImportRegistrar registrar({
    {"DequantizeLinear", 2, 3, &ImportDequantizeLinear},
    {"QuantizeLinear", 2, 3, &ImportQuantizeLinear},
});

}  // namespace
}  // namespace mendel::lowerings::quantize
