// Elementwise operators whose ONNX form is not the language's: bounds as inputs, any number of
// operands, mixed dtypes.

#include <cmath>
#include <limits>

#include "graph/integers.h"
#include "onnx/formula.h"

namespace mendel::lowerings::elementwise {
namespace {

/// Before opset 7 the second operand broadcast only where attribute `broadcast` said so, its
/// dimensions beginning at `axis`.
constexpr int64_t kNumPyBroadcasting = 7;

/// The second operand, shaped for NumPy's broadcasting.
absl::StatusOr<ValueId> SecondOperand(OpContext& op) {
  const ValueId b = op.In(1);
  if (op.version() >= kNumPyBroadcasting) return b;
  const Shape& a = op.shape(op.In(0));
  Shape shape = op.shape(b);
  const bool broadcast = op.Int("broadcast", 0) != 0;
  const int64_t rank = static_cast<int64_t>(a.size()), own = static_cast<int64_t>(shape.size());
  int64_t axis = op.Int("axis", rank - own);
  if (!broadcast) {
    if (shape != a)
      return InvalidInput("shapes ", ShapeString(a), " and ", ShapeString(shape),
                          " differ without broadcast = 1");
    return b;
  }
  if (axis < 0) axis += rank;
  if (axis < 0 || axis + own > rank)
    return InvalidInput("cannot broadcast ", ShapeString(shape), " into ", ShapeString(a),
                        " from axis ", axis);
  shape.resize(static_cast<size_t>(rank - axis), 1);
  return op.Reshape(b, shape);
}

absl::Status ImportBinary(OpContext& op) {
  MENDEL_ASSIGN_OR_RETURN(const ValueId b, SecondOperand(op));
  return op.SetOutput(0, op.Emit(op.op(), {op.In(0), b}));
}

/// The bound in attribute `name` or input `k`, if there is one.
absl::StatusOr<std::optional<ValueId>> ClipBound(OpContext& op, std::string_view name, int k) {
  if (op.HasAttribute(name)) {
    const double bound = op.Float(name, 0);
    const DType dtype = op.type(op.In(0)).dtype;
    if (IsIntegral(dtype) && !IsIntegerOf(dtype, bound))
      return InvalidInput("bound ", bound, " is no ", DTypeName(dtype));
    return std::optional<ValueId>(op.ScalarLike(op.In(0), bound));
  }
  if (!op.Has(k)) return std::optional<ValueId>();
  if (NumElements(op.shape(op.In(k))) != 1)
    return InvalidInput("bound '", name, "' must be one element");
  MENDEL_ASSIGN_OR_RETURN(const ValueId scalar, op.Reshape(op.In(k), {}));
  return std::optional<ValueId>(scalar);
}

absl::Status ImportClip(OpContext& op) {
  ValueId x = op.In(0);
  MENDEL_ASSIGN_OR_RETURN(const std::optional<ValueId> low, ClipBound(op, "min", 1));
  MENDEL_ASSIGN_OR_RETURN(const std::optional<ValueId> high, ClipBound(op, "max", 2));
  const auto known = [&](const std::optional<ValueId>& bound) {
    return !bound.has_value() || op.ConstantOf(*bound) != nullptr;
  };
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
    MENDEL_ASSIGN_OR_RETURN(
        result,
        op.Emit("Div", {result, op.ScalarLike(result, static_cast<double>(inputs.size()))}));
  }
  return op.SetOutput(0, result);
}

bool IsAllOf(const Tensor& tensor, double value) {
  for (int64_t k = 0; k < tensor.size(); ++k) {
    if (tensor.DoubleAt(k) != value) return false;
  }
  return tensor.size() > 0;
}

/// True where broadcasting `other` to `shape` leaves `shape` as it is.
bool AddsNoElements(const Shape& shape, const Shape& other) {
  if (other.size() > shape.size()) return false;
  for (size_t d = 0; d < other.size(); ++d) {
    if (other[d] != 1 && other[d] != shape[shape.size() - other.size() + d]) return false;
  }
  return true;
}

/// The exponent may be of another dtype; the result has the base's. A square is a product, which
/// certificates take apart.
absl::Status ImportPow(OpContext& op) {
  MENDEL_ASSIGN_OR_RETURN(const ValueId second, SecondOperand(op));
  const DType dtype = op.type(op.In(0)).dtype;
  const DType exponent_dtype = op.type(second).dtype;
  const DType compute = IsIntegral(dtype) && IsFloat(exponent_dtype) ? exponent_dtype : dtype;
  MENDEL_ASSIGN_OR_RETURN(const ValueId base, op.Cast(op.In(0), compute));
  const Tensor* number = op.ConstantOf(second);
  if (number != nullptr && IsFloat(dtype) && IsAllOf(*number, 2) &&
      AddsNoElements(op.type(base).shape, number->shape())) {
    MENDEL_ASSIGN_OR_RETURN(const ValueId square, op.Emit("Mul", {base, base}));
    return op.SetOutput(0, square);
  }
  MENDEL_ASSIGN_OR_RETURN(const ValueId exponent, op.Cast(second, compute));
  MENDEL_ASSIGN_OR_RETURN(const ValueId power, op.Emit("Pow", {base, exponent}));
  return op.SetOutput(0, op.Cast(power, dtype));
}

/// Division and remainder of integers by a constant zero would be computed here.
absl::Status RefuseZero(OpContext& op) {
  if (!IsIntegral(op.type(op.In(1)).dtype)) return absl::OkStatus();
  const Tensor* divisor = op.ConstantOf(op.In(1));
  for (int64_t k = 0; divisor != nullptr && k < divisor->size(); ++k) {
    if (divisor->IntAt(k) == 0) return InvalidInput("divides integers by zero");
  }
  return absl::OkStatus();
}

absl::Status ImportDivision(OpContext& op) {
  MENDEL_RETURN_IF_ERROR(RefuseZero(op));
  return ImportBinary(op);
}

/// The remainder of floats with the divisor's sign (opset 28) is C's, plus the divisor where the
/// signs differ.
absl::Status ImportMod(OpContext& op) {
  MENDEL_RETURN_IF_ERROR(RefuseZero(op));
  const ValueId a = op.In(0), b = op.In(1);
  if (!IsFloat(op.type(a).dtype) || op.version() < 28 || op.Int("fmod", 0) != 0)
    return ImportDirect(op);
  Formula f(op);
  const ValueId rest = f.Op("Mod", {a, b}, {{"fmod", int64_t{1}}});
  const ValueId zero = f.Scalar(rest, 0);
  const ValueId opposed = f.Op("Xor", {f.Op("Less", {rest, zero}), f.Op("Less", {b, zero})});
  const ValueId differs = f.Op("And", {opposed, f.Op("Not", {f.Op("Equal", {rest, zero})})});
  f.SetOutput(0, f.Where(differs, f.Add(rest, b), rest));
  return f.status();
}

/// All ones minus x: each bit of the difference is the other one, and none is borrowed.
absl::Status ImportBitwiseNot(OpContext& op) {
  const DType dtype = op.type(op.In(0)).dtype;
  if (!IsIntegral(dtype) || dtype == DType::kBool)
    return InvalidInput("expects integers, not ", DTypeName(dtype));
  return op.SetOutput(0, op.Emit("Sub", {op.ScalarLike(op.In(0), -1), op.In(0)}));
}

/// Before opset 7 a vector of slopes belonged to the channels.
absl::Status ImportPRelu(OpContext& op) {
  ValueId slope = op.In(1);
  const int64_t rank = op.rank(op.In(0));
  if (op.version() < kNumPyBroadcasting && op.rank(slope) == 1 && rank > 1) {
    Shape shape(static_cast<size_t>(rank - 1), 1);
    shape[0] = op.shape(slope)[0];
    MENDEL_ASSIGN_OR_RETURN(slope, op.Reshape(slope, shape));
  }
  return op.SetOutput(0, op.Emit("PRelu", {op.In(0), slope}));
}

/// Opset 1 rounded the defaults to four digits.
absl::Status ImportSelu(OpContext& op) {
  const bool first = op.version() < 6;
  const double alpha = op.Float("alpha", first ? 1.6732f : 1.67326319217681884765625);
  const double gamma = op.Float("gamma", first ? 1.0507f : 1.05070102214813232421875);
  return op.SetOutput(0, op.Emit("Selu", {op.In(0)}, {{"alpha", alpha}, {"gamma", gamma}}));
}

absl::Status ImportSwish(OpContext& op) {
  Formula f(op);
  f.SetOutput(0, f.Swish(op.In(0), op.Float("alpha", 1)));
  return f.status();
}

absl::Status ImportSwiGlu(OpContext& op) {
  if (op.type(op.In(0)) != op.type(op.In(1)))
    return InvalidInput("the operands must have one type");
  Formula f(op);
  f.SetOutput(0, f.Mul(f.Swish(op.In(0), op.Float("alpha", 1)), op.In(1)));
  return f.status();
}

/// x + bias below -lambd, x - bias above lambd, else zero. The bounds of integers are integers.
absl::Status ImportShrink(OpContext& op) {
  const ValueId x = op.In(0);
  const DType dtype = op.type(x).dtype;
  const double bias = op.Float("bias", 0), lambd = op.Float("lambd", 0.5);
  const double high = IsIntegral(dtype) ? std::floor(lambd) : lambd;
  const double low = IsIntegral(dtype) ? std::ceil(-lambd) : -lambd;
  for (const double number : {bias, high, low}) {
    if (IsIntegral(dtype) && !IsIntegerOf(dtype, number))
      return Unsupported("bias ", bias, " and lambd ", lambd, " of ", DTypeName(dtype));
  }
  const ValueId zero = op.ScalarLike(x, 0), offset = op.ScalarLike(x, bias);
  MENDEL_ASSIGN_OR_RETURN(const ValueId above, op.Emit("Greater", {x, op.ScalarLike(x, high)}));
  MENDEL_ASSIGN_OR_RETURN(const ValueId below, op.Emit("Less", {x, op.ScalarLike(x, low)}));
  MENDEL_ASSIGN_OR_RETURN(const ValueId lowered, op.Emit("Sub", {x, offset}));
  MENDEL_ASSIGN_OR_RETURN(const ValueId raised, op.Emit("Add", {x, offset}));
  MENDEL_ASSIGN_OR_RETURN(const ValueId upper, op.Emit("Where", {above, lowered, zero}));
  return op.SetOutput(0, op.Emit("Where", {below, raised, upper}));
}

const OpImportRegistrar registrar({
    {"Add", 2, 2, &ImportBinary},
    {"And", 2, 2, &ImportBinary},
    {"BitwiseNot", 1, 1, &ImportBitwiseNot},
    {"Clip", 1, 3, &ImportClip},
    {"Div", 2, 2, &ImportDivision},
    {"Equal", 2, 2, &ImportBinary},
    {"Greater", 2, 2, &ImportBinary},
    {"Less", 2, 2, &ImportBinary},
    {"Max", 1, kVariadic, &ImportVariadic},
    {"Mean", 1, kVariadic, &ImportVariadic},
    {"Min", 1, kVariadic, &ImportVariadic},
    {"Mod", 2, 2, &ImportMod},
    {"Mul", 2, 2, &ImportBinary},
    {"Or", 2, 2, &ImportBinary},
    {"PRelu", 2, 2, &ImportPRelu},
    {"Pow", 2, 2, &ImportPow},
    {"Selu", 1, 1, &ImportSelu},
    {"Shrink", 1, 1, &ImportShrink},
    {"Sub", 2, 2, &ImportBinary},
    {"Sum", 1, kVariadic, &ImportVariadic},
    {"SwiGLU", 2, 2, &ImportSwiGlu},
    {"Swish", 1, 1, &ImportSwish},
    {"Xor", 2, 2, &ImportBinary},
});

}  // namespace
}  // namespace mendel::lowerings::elementwise
