// Elementwise operators whose ONNX form is not the language's: bounds as inputs, any number of operands, mixed dtypes.

#include <cmath>
#include <limits>

#include "onnx/op_context.h"

namespace mendel::lowerings::elementwise {
namespace {

/// The bound in attribute `name` or input `k`, if there is one.
absl::StatusOr<std::optional<ValueId>> ClipBound(OpContext& op, std::string_view name, int k) {
  if (op.HasAttribute(name)) return std::optional<ValueId>(op.ScalarLike(op.In(0), op.Float(name, 0)));
  if (!op.Has(k)) return std::optional<ValueId>();
  if (NumElements(op.shape(op.In(k))) != 1) return InvalidInput("bound '", name, "' must be one element");
  MENDEL_ASSIGN_OR_RETURN(const ValueId scalar, op.Reshape(op.In(k), {}));
  return std::optional<ValueId>(scalar);
}

absl::Status ImportClip(OpContext& op) {
  ValueId x = op.In(0);
  MENDEL_ASSIGN_OR_RETURN(const std::optional<ValueId> low, ClipBound(op, "min", 1));
  MENDEL_ASSIGN_OR_RETURN(const std::optional<ValueId> high, ClipBound(op, "max", 2));
  const auto known = [&](const std::optional<ValueId>& bound) { return !bound.has_value() || op.ConstantOf(*bound) != nullptr; };
  if (IsFloat(op.type(x).dtype) && known(low) && known(high)) {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    const double min = low.has_value() ? op.ConstantOf(*low)->DoubleAt(0) : -kInfinity;
    const double max = high.has_value() ? op.ConstantOf(*high)->DoubleAt(0) : kInfinity;
    if (std::isnan(min) || std::isnan(max)) return InvalidInput("a bound is not a number");
    if (min <= max) return op.SetOutput(0, op.Emit("Clip", {x}, {{"min", min}, {"max", max}}));
  }
  if (low.has_value()) {
    MENDEL_ASSIGN_OR_RETURN(x, op.Emit("Max", {x, *low}));
  }
  if (high.has_value()) {
    MENDEL_ASSIGN_OR_RETURN(x, op.Emit("Min", {x, *high}));
  }
  return op.SetOutput(0, x);
}

/// Min, Max, Sum and Mean of any number of operands, from the left.
absl::Status ImportVariadic(OpContext& op) {
  MENDEL_ASSIGN_OR_RETURN(const std::vector<ValueId> inputs, op.AllInputs());
  const bool adds = op.op() == "Sum" || op.op() == "Mean";
  ValueId result = inputs[0];
  for (size_t k = 1; k < inputs.size(); ++k) {
    MENDEL_ASSIGN_OR_RETURN(result, op.Emit(adds ? "Add" : op.op(), {result, inputs[k]}));
  }
  if (op.op() == "Mean" && inputs.size() > 1) {
    MENDEL_ASSIGN_OR_RETURN(result, op.Emit("Div", {result, op.ScalarLike(result, static_cast<double>(inputs.size()))}));
  }
  return op.SetOutput(0, result);
}

/// The exponent may be of another dtype; the result has the base's.
absl::Status ImportPow(OpContext& op) {
  const DType dtype = op.type(op.In(0)).dtype;
  const DType exponent_dtype = op.type(op.In(1)).dtype;
  const DType compute = IsIntegral(dtype) && IsFloat(exponent_dtype) ? exponent_dtype : dtype;
  MENDEL_ASSIGN_OR_RETURN(const ValueId base, op.Cast(op.In(0), compute));
  MENDEL_ASSIGN_OR_RETURN(const ValueId exponent, op.Cast(op.In(1), compute));
  MENDEL_ASSIGN_OR_RETURN(const ValueId power, op.Emit("Pow", {base, exponent}));
  return op.SetOutput(0, op.Cast(power, dtype));
}

/// Division and remainder of integers by a constant zero would be computed here.
absl::Status ImportDivision(OpContext& op) {
  const Tensor* divisor = op.ConstantOf(op.In(1));
  if (divisor != nullptr && IsIntegral(divisor->dtype())) {
    for (int64_t k = 0; k < divisor->size(); ++k) {
      if (divisor->IntAt(k) == 0) return InvalidInput("divides integers by zero");
    }
  }
  return ImportDirect(op);
}

/// x + bias below -lambd, x - bias above lambd, else zero.
absl::Status ImportShrink(OpContext& op) {
  const ValueId x = op.In(0);
  const double bias = op.Float("bias", 0), lambd = op.Float("lambd", 0.5);
  const ValueId zero = op.ScalarLike(x, 0), offset = op.ScalarLike(x, bias);
  MENDEL_ASSIGN_OR_RETURN(const ValueId above, op.Emit("Greater", {x, op.ScalarLike(x, lambd)}));
  MENDEL_ASSIGN_OR_RETURN(const ValueId below, op.Emit("Less", {x, op.ScalarLike(x, -lambd)}));
  MENDEL_ASSIGN_OR_RETURN(const ValueId lowered, op.Emit("Sub", {x, offset}));
  MENDEL_ASSIGN_OR_RETURN(const ValueId raised, op.Emit("Add", {x, offset}));
  MENDEL_ASSIGN_OR_RETURN(const ValueId upper, op.Emit("Where", {above, lowered, zero}));
  return op.SetOutput(0, op.Emit("Where", {below, raised, upper}));
}

const OpImportRegistrar registrar({
    {"Clip", 1, 3, &ImportClip},
    {"Div", 2, 2, &ImportDivision},
    {"Max", 1, kVariadic, &ImportVariadic},
    {"Mean", 1, kVariadic, &ImportVariadic},
    {"Min", 1, kVariadic, &ImportVariadic},
    {"Mod", 2, 2, &ImportDivision},
    {"Pow", 2, 2, &ImportPow},
    {"Shrink", 1, 1, &ImportShrink},
    {"Sum", 1, kVariadic, &ImportVariadic},
});

}  // namespace
}  // namespace mendel::lowerings::elementwise
