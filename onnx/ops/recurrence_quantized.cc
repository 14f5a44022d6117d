// Products of recurrences with quantized weights (recurrence.h).

#include "base/status.h"
#include "onnx/ops/quantized.h"
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
  constexpr double kSmallestScale = 0x1p-126;  // of a state of zeros
  Formula f(op_);
  const DynamicRange range = RangeOf(f, x, kSmallestScale);
  const ValueId codes = f.Op("Clip", {f.Add(f.Op("Round", {f.Div(x, range.scale)}), range.shift)},
                             {{"max", 255.0}, {"min", 0.0}});
  const auto integers = [&](ValueId whole) {
    return f.Cast(f.Cast(whole, DType::kU8), DType::kI32);
  };
  const ValueId sums = f.MatMul(f.Sub(integers(codes), integers(range.shift)), weights);
  const ValueId y = f.Mul(f.Cast(sums, DType::kF32), f.Mul(range.scale, scale));
  MENDEL_RETURN_IF_ERROR(f.status());
  return y;
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
