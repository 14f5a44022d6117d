// Products of recurrences with quantized weights (recurrence.h).

#include <numeric>

#include "onnx/ops/recurrence.h"

namespace mendel {
namespace {

constexpr int64_t kMostUnrolled = 512;

}  // namespace

absl::Status Recurrence::CheckQuantized() const {
  for (int k = 8; k < 12; ++k) {
    if (!op_.Has(k)) return InvalidInput("expects scales and zero points of W and R");
  }
  if (steps_ <= kMostUnrolled) return absl::OkStatus();
  return Unsupported(steps_, " steps with quantized weights are not supported (1 to ",
                     kMostUnrolled, ")");
}

absl::StatusOr<ValueId> Recurrence::Recurrent(ValueId state, const Direction& direction) {
  if (!quantized_) return Emit("MatMul", {state, direction.recurrent});
  return QuantizedProduct(state, direction.recurrent, *direction.recurrent_scale);
}

absl::StatusOr<ValueId> Recurrence::QuantizedProduct(ValueId x, ValueId weights, ValueId scale) {
  constexpr double kLargestCode = 255, kSmallestScale = 0x1p-126;  // of a state of zeros
  Ints axes(TypeOf(x).shape.size());
  std::iota(axes.begin(), axes.end(), 0);
  MENDEL_ASSIGN_OR_RETURN(const ValueId zero, Number(x, 0));
  MENDEL_ASSIGN_OR_RETURN(const ValueId codes, Number(x, kLargestCode));
  MENDEL_ASSIGN_OR_RETURN(const ValueId smallest, Number(x, kSmallestScale));
  const Attributes whole = {{"axes", axes}, {"keepdims", int64_t{0}}};
  const Attributes range = {{"max", kLargestCode}, {"min", 0.0}};
  MENDEL_ASSIGN_OR_RETURN(Values low, EmitAll("ReduceMin", {x}, whole));
  MENDEL_ASSIGN_OR_RETURN(Values high, EmitAll("ReduceMax", {x}, whole));
  MENDEL_ASSIGN_OR_RETURN(low[0], Emit("Min", {low[0], zero}));
  MENDEL_ASSIGN_OR_RETURN(high[0], Emit("Max", {high[0], zero}));
  MENDEL_ASSIGN_OR_RETURN(ValueId step, Emit("Sub", {high[0], low[0]}));
  MENDEL_ASSIGN_OR_RETURN(step, Emit("Div", {step, codes}));
  MENDEL_ASSIGN_OR_RETURN(step, Emit("Max", {step, smallest}));
  MENDEL_ASSIGN_OR_RETURN(ValueId shift, Emit("Sub", {zero, low[0]}));
  MENDEL_ASSIGN_OR_RETURN(shift, Emit("Div", {shift, step}));
  MENDEL_ASSIGN_OR_RETURN(Values clipped, EmitAll("Clip", {shift}, range));
  MENDEL_ASSIGN_OR_RETURN(shift, Emit("Round", {clipped[0]}));
  MENDEL_ASSIGN_OR_RETURN(ValueId code, Emit("Div", {x, step}));
  MENDEL_ASSIGN_OR_RETURN(code, Emit("Round", {code}));
  MENDEL_ASSIGN_OR_RETURN(code, Emit("Add", {code, shift}));
  MENDEL_ASSIGN_OR_RETURN(clipped, EmitAll("Clip", {code}, range));
  MENDEL_ASSIGN_OR_RETURN(code, Emit("Sub", {clipped[0], shift}));
  MENDEL_ASSIGN_OR_RETURN(const ValueId product, Emit("MatMul", {code, weights}));
  MENDEL_ASSIGN_OR_RETURN(const ValueId factor, Emit("Mul", {step, scale}));
  return Emit("Mul", {product, factor});
}

absl::StatusOr<ValueId> Recurrence::Parameter(int k, int64_t d) {
  const Shape shape = op_.shape(op_.In(k));
  const bool is_one = shape == Shape{directions_};
  if (!is_one && shape != Shape{directions_, gates_ * hidden_}) {
    return InvalidInput("input ", k, " must have ", directions_, " or ", directions_, " times ",
                        gates_ * hidden_, " elements, not ", ShapeString(shape));
  }
  MENDEL_ASSIGN_OR_RETURN(const Values each, Parts(op_.In(k), 0, directions_));
  MENDEL_ASSIGN_OR_RETURN(
      const ValueId value,
      op_.Reshape(each[static_cast<size_t>(d)], is_one ? Shape{} : Shape{gates_ * hidden_}));
  return op_.Cast(value, DType::kF32);
}

}  // namespace mendel
