// Comparisons, Booleans and Where. Finite numbers are totally ordered; every comparison of
// NaN is false.

#include <array>
#include <cmath>
#include <optional>
#include <vector>

#include "verifier/axioms/exact.h"
#include "verifier/axioms/limits.h"
#include "verifier/axioms/rules.h"
#include "verifier/axioms/scaled.h"
#include "verifier/axioms/signs.h"

namespace mendel {
namespace {

constexpr std::array<AxiomDescription, 13> kLogicAxioms = {{
    {"boolean identities", "not not x = x, x and x = x, x or x = x", "Boolean algebra."},
    {"comparison with an infinity",
     "-inf < x and x < inf are true; x < -inf, inf < x, x = -inf and x = inf are not",
     "x is finite for every input."},
    {"comparison of multiples",
     "c x < 0 is x < 0, 0 < c x is 0 < x, c > 0; -x < 0 is 0 < x; -x < -y is y < x",
     "Multiplication by c > 0 is increasing, by -1 decreasing."},
    {"moved negation", "move(not c) = not move(c): reshaped, transposed, expanded or cut",
     "Every element of the result is one of the operand's."},
    {"nested choice",
     "(c ? (d ? x : y) : y) = (c and d ? x : y), y an infinity; likewise or; (c ? x + m : -inf) = "
     "(c and m = 0 ? x : -inf)",
     "Case distinction; m is a literal of zeros and -inf."},
    {"one order relation",
     "x > y is y < x; x <= y, and also x < y or x = y, is not y < x; x >= y is not x < y",
     "Finite numbers are totally ordered. The negations hold where neither side may be undefined."},
    {"sum with a chosen infinity", "x + (c ? y : -inf) = (c ? x + y : -inf), likewise for inf",
     "x is finite for every input, or such a choice itself: its sum with the infinity is that."},
    {"test of a finite value", "x is not NaN, and no infinity", "x is finite for every input."},
    {"where as an extreme", "(x < y ? x : y) = min(x, y), (x < y ? y : x) = max(x, y)",
     "The definitions; at x = y both agree. The branch of a true comparison is defined."},
    {"where as leaky relu",
     "(x < 0 ? a x : x) = (0 < x ? x : a x) = Relu(x) + a (x - Relu(x)); abs(x) for a = -1",
     "Case distinction; both are 0 at 0. A slope that is no literal is finite for every input."},
    {"where at zero", "(0 < x ? y : z) = (x < 0 ? z : y), where y and z are 0 at x = 0",
     "The conditions differ at x = 0 alone, where both branches are 0; their other factors are "
     "finite for every input."},
    {"where of equal branches or a known condition",
     "(c ? x : x) = x, (true ? x : y) = x, (not c ? x : y) = (c ? y : x)",
     "The definition of where."},
    {"where of multiples", "(c ? a x : a y) = a (c ? x : y)", "Case distinction."},
}};

std::optional<ValueId> DoubleNot(Terms& t, ValueId v) {
  const ValueId x = t.in(v, 0);
  return t.Is(x, "Not") ? std::optional(t.in(x, 0)) : std::nullopt;
}

std::optional<ValueId> Idempotent(Terms& t, ValueId v) {
  return t.in(v, 0) == t.in(v, 1) ? std::optional(t.in(v, 0)) : std::nullopt;
}

/// No comparison of this value is one of NaN.
bool IsOrdered(const Terms& t, ValueId v) { return !IsFloat(t.dtype(v)) || t.IsDefined(v); }

/// a <= b in canonical form.
ValueId NotAbove(Terms& t, ValueId a, ValueId b) {
  if (!IsOrdered(t, a) || !IsOrdered(t, b)) return t.CanonicalOp("LessOrEqual", {a, b});
  return t.Unary("Not", t.Op("Less", {b, a}));
}

/// Or(p < q, p = q) in any order.
std::optional<ValueId> LessOrEqualByOr(Terms& t, ValueId v) {
  for (size_t k = 0; k < 2; ++k) {
    const ValueId less = t.in(v, k), equal = t.in(v, 1 - k);
    if (!t.Is(less, "Less") || !t.Is(equal, "Equal")) continue;
    const ValueId p = t.in(less, 0), q = t.in(less, 1);
    const bool same = (t.in(equal, 0) == p && t.in(equal, 1) == q) ||
                      (t.in(equal, 0) == q && t.in(equal, 1) == p);
    if (same) return NotAbove(t, p, q);
  }
  return std::nullopt;
}

std::optional<ValueId> Greater(Terms& t, ValueId v) {
  return t.Op("Less", {t.in(v, 1), t.in(v, 0)});
}
std::optional<ValueId> LessOrEqual(Terms& t, ValueId v) {
  const ValueId a = t.in(v, 0), b = t.in(v, 1);
  return IsOrdered(t, a) && IsOrdered(t, b) ? std::optional(NotAbove(t, a, b)) : std::nullopt;
}
std::optional<ValueId> GreaterOrEqual(Terms& t, ValueId v) {
  return NotAbove(t, t.in(v, 1), t.in(v, 0));
}

/// The infinity that all elements of a literal are.
std::optional<double> Infinity(const Terms& t, ValueId v) {
  const Node& node = t.node(v);
  if (!IsConstant(node) || !SymbolName(node).empty() || !IsFloat(t.dtype(v))) return std::nullopt;
  const Tensor& tensor = ConstantValue(node);
  if (tensor.size() == 0 || !std::isinf(tensor.DoubleAt(0))) return std::nullopt;
  for (int64_t i = 1; i < tensor.size(); ++i) {
    if (tensor.DoubleAt(i) != tensor.DoubleAt(0)) return std::nullopt;
  }
  return tensor.DoubleAt(0);
}

std::optional<ValueId> LessThanAnInfinity(Terms& t, ValueId v) {
  const ValueId a = t.in(v, 0), b = t.in(v, 1);
  const std::optional<double> low = Infinity(t, a), high = Infinity(t, b);
  if (high.has_value() && t.IsDefined(a))
    return t.Fit(t.Literal(DType::kBool, *high > 0 ? 1 : 0), t.shape(v));
  if (low.has_value() && t.IsDefined(b))
    return t.Fit(t.Literal(DType::kBool, *low < 0 ? 1 : 0), t.shape(v));
  return std::nullopt;
}

std::optional<ValueId> EqualToAnInfinity(Terms& t, ValueId v) {
  const ValueId a = t.in(v, 0), b = t.in(v, 1);
  const bool apart = (Infinity(t, a).has_value() && t.IsDefined(b)) ||
                     (Infinity(t, b).has_value() && t.IsDefined(a));
  return apart ? std::optional(t.Fit(t.Literal(DType::kBool, 0), t.shape(v))) : std::nullopt;
}

std::optional<ValueId> TestOfFinite(Terms& t, ValueId v) {
  if (!t.IsDefined(t.in(v, 0))) return std::nullopt;
  return t.Fit(t.Literal(DType::kBool, 0), t.shape(v));
}

/// Elements of a stored mask that are looked at.
constexpr int64_t kMostMasked = int64_t{1} << 22;

/// All elements of a literal are finite, or `infinity`.
bool HoldsNoOtherInfinity(const Terms& t, ValueId v, double infinity) {
  const Node& node = t.node(v);
  if (!IsConstant(node) || !IsKnown(node, t.weights()) || !IsFloat(t.dtype(v))) return false;
  const Tensor& tensor = ConstantValue(node);
  if (tensor.size() > kMostMasked) return false;
  for (int64_t i = 0; i < tensor.size(); ++i) {
    const double element = tensor.DoubleAt(i);
    if (!std::isfinite(element) && element != infinity) return false;
  }
  return true;
}

/// The value is finite, or `infinity`, for every input. The depth bounds the work.
bool IsFiniteOr(const Terms& t, ValueId v, double infinity, int depth = 8) {
  if (t.IsDefined(v) || HoldsNoOtherInfinity(t, v, infinity)) return true;
  if (depth == 0 || !(t.Is(v, "Where") || t.Is(v, "Add"))) return false;
  const size_t first = t.Is(v, "Where") ? 1 : 0;
  return IsFiniteOr(t, t.in(v, first), infinity, depth - 1) &&
         IsFiniteOr(t, t.in(v, first + 1), infinity, depth - 1);
}

std::optional<ValueId> SumWithChosenInfinity(Terms& t, ValueId v) {
  for (size_t k = 0; k < 2; ++k) {
    const ValueId choice = t.in(v, k), x = t.in(v, 1 - k);
    if (!t.Is(choice, "Where")) continue;
    for (const size_t branch : {1, 2}) {
      const ValueId masked = t.in(choice, branch), other = t.in(choice, 3 - branch);
      const std::optional<double> infinity = Infinity(t, masked);
      if (!infinity.has_value() || !IsFiniteOr(t, x, *infinity)) continue;
      const ValueId condition = t.in(choice, 0);
      const ValueId sum = t.Scalar(other) == 0.0 ? x : t.Add(x, other);
      return t.Fit(branch == 1 ? t.Op("Where", {condition, masked, sum})
                               : t.Op("Where", {condition, sum, masked}),
                   t.shape(v));
    }
  }
  return std::nullopt;
}

/// True where a mask of zeros and `infinity` is zero.
std::optional<ValueId> KeptByMask(Terms& t, ValueId mask, double infinity) {
  if (!HoldsNoOtherInfinity(t, mask, infinity)) return std::nullopt;
  const Tensor& tensor = ConstantValue(t.node(mask));
  std::vector<int64_t> kept;
  for (int64_t i = 0; i < tensor.size(); ++i) {
    const double element = tensor.DoubleAt(i);
    if (element != 0 && element != infinity) return std::nullopt;
    kept.push_back(element == 0 ? 1 : 0);
  }
  return t.Constant(Tensor::FromInts({DType::kBool, tensor.shape()}, kept), "");
}

/// The condition's operands are what must be floats here.
std::optional<ValueId> LessOfMultiples(Terms& t, ValueId v) {
  const ValueId a = t.in(v, 0), b = t.in(v, 1);
  if (!IsFloat(t.dtype(a))) return std::nullopt;
  const std::optional<Scaled> left = AsScaled(t, a), right = AsScaled(t, b);
  const bool left_zero = t.Scalar(a) == 0.0, right_zero = t.Scalar(b) == 0.0;
  const bool fits = (left.has_value() && right_zero) || (right.has_value() && left_zero) ||
                    (left.has_value() && right.has_value() && left->SameScale(*right));
  if (!fits) return std::nullopt;
  const ValueId x = left.has_value() ? left->x : a, y = right.has_value() ? right->x : b;
  const bool negated = (left.has_value() ? left : right)->kind == Scaled::Kind::kNegated;
  return negated ? t.Op("Less", {y, x}) : t.Op("Less", {x, y});
}

std::optional<ValueId> KnownWhere(Terms& t, ValueId v) {
  const ValueId condition = t.in(v, 0), yes = t.in(v, 1), no = t.in(v, 2);
  const Shape shape = t.shape(v);
  if (yes == no) return t.Fit(yes, shape);
  if (t.Is(condition, "Not")) return t.Op("Where", {t.in(condition, 0), no, yes});
  const std::optional<double> known = t.Number(condition);
  if (known.has_value()) return t.Fit(*known != 0 ? yes : no, shape);
  return std::nullopt;
}

std::optional<ValueId> NestedChoice(Terms& t, ValueId v) {
  const ValueId condition = t.in(v, 0), yes = t.in(v, 1), no = t.in(v, 2);
  if (t.Is(yes, "Where") && t.in(yes, 2) == no && Infinity(t, no).has_value()) {
    const ValueId both = t.Op("And", {condition, t.in(yes, 0)});
    return t.Fit(t.Op("Where", {both, t.in(yes, 1), no}), t.shape(v));
  }
  const std::optional<double> infinity = Infinity(t, no);
  for (size_t k = 0; infinity.has_value() && t.Is(yes, "Add") && k < 2; ++k) {
    const ValueId mask = t.in(yes, k), x = t.in(yes, 1 - k);
    if (!IsConstantTerm(t, mask) || !IsFiniteOr(t, x, *infinity)) continue;
    const std::optional<ValueId> kept = KeptByMask(t, mask, *infinity);
    if (!kept.has_value()) continue;
    return t.Fit(t.Op("Where", {t.Op("And", {condition, *kept}), x, no}), t.shape(v));
  }
  if (t.Is(no, "Where") && t.in(no, 1) == yes && Infinity(t, yes).has_value()) {
    const ValueId either = t.Op("Or", {condition, t.in(no, 0)});
    return t.Fit(t.Op("Where", {either, yes, t.in(no, 2)}), t.shape(v));
  }
  return std::nullopt;
}

bool IsFloatComparison(const Terms& t, ValueId v) {
  return t.Is(v, "Less") && IsFloat(t.dtype(t.in(v, 0)));
}

std::optional<ValueId> WhereAsExtreme(Terms& t, ValueId v) {
  const ValueId condition = t.in(v, 0), yes = t.in(v, 1), no = t.in(v, 2);
  if (!IsFloatComparison(t, condition)) return std::nullopt;
  const ValueId x = t.in(condition, 0), y = t.in(condition, 1);
  // The second branch is chosen where x or y is NaN, and must be NaN there.
  if (yes == x && no == y && t.IsDefined(x)) return t.Op("Min", {x, y});
  if (yes == y && no == x && t.IsDefined(y)) return t.Op("Max", {x, y});
  return std::nullopt;
}

std::optional<ValueId> WhereAsLeakyRelu(Terms& t, ValueId v) {
  const ValueId condition = t.in(v, 0);
  if (!IsFloatComparison(t, condition)) return std::nullopt;
  const bool below = t.Scalar(t.in(condition, 1)) == 0.0;
  if (!below && t.Scalar(t.in(condition, 0)) != 0.0) return std::nullopt;
  const ValueId x = t.in(condition, below ? 0 : 1);
  const ValueId identity = t.in(v, below ? 2 : 1), multiple = t.in(v, below ? 1 : 2);
  if (identity != x || t.shape(x) != t.shape(v)) return std::nullopt;
  if (t.Is(multiple, "Neg") && t.in(multiple, 0) == x) return t.Unary("Abs", x);
  const ValueId relu = t.Unary("Relu", x), rest = t.Sub(x, relu);
  if (const std::optional<Scaled> scale = AsScaled(t, multiple);
      scale.has_value() && scale->x == x) {
    return t.Add(relu, Scale(t, rest, *scale));
  }
  if (t.Is(multiple, "Neg")) return std::nullopt;
  // The slope counts where x is not negative, too: 0 times an undefined one is no number.
  for (size_t k = 0; k < 2 && t.Is(multiple, "Mul"); ++k) {
    const ValueId slope = t.in(multiple, 1 - k);
    if (t.in(multiple, k) == x && t.IsDefined(slope)) return t.Add(relu, t.Mul(rest, slope));
  }
  return std::nullopt;
}

/// a exp(y) - a, which is 0 where y is: y.
std::optional<ValueId> ExponentLessItsScale(const Terms& t, ValueId value) {
  if (!t.Is(value, "Add")) return std::nullopt;
  const std::optional<double> shift = t.Scalar(t.in(value, 1));
  const ValueId multiple = t.in(value, 0);
  const std::optional<Scaled> scale = AsScaled(t, multiple);
  if (t.Is(multiple, "Exp") && shift == -1.0) return t.in(multiple, 0);
  const bool fits = scale.has_value() && scale->kind == Scaled::Kind::kTimes &&
                    t.Is(scale->x, "Exp") && shift == -scale->factor;
  return fits ? std::optional(t.in(scale->x, 0)) : std::nullopt;
}

/// `value` is 0 wherever x is 0: its other factors are finite for every input. The depth bounds
/// the work.
bool VanishesWith(const Terms& t, ValueId x, ValueId value, int depth = 8) {
  if (value == x) return true;
  if (depth == 0) return false;
  const auto vanishes = [&](size_t k) { return VanishesWith(t, x, t.in(value, k), depth - 1); };
  if (t.Is(value, "Neg") || t.Is(value, "Relu")) return vanishes(0);
  if (t.Is(value, "Div")) return vanishes(0) && t.Scalar(t.in(value, 1)).value_or(0) != 0;
  if (t.Is(value, "Mul"))
    return (vanishes(0) && t.IsDefined(t.in(value, 1))) ||
           (vanishes(1) && t.IsDefined(t.in(value, 0)));
  if (t.Is(value, "Sub")) return vanishes(0) && vanishes(1);
  if (!t.Is(value, "Add")) return false;
  if (const auto exponent = ExponentLessItsScale(t, value); exponent.has_value())
    return VanishesWith(t, x, *exponent, depth - 1);
  return vanishes(0) && vanishes(1);
}

std::optional<ValueId> WhereAtZero(Terms& t, ValueId v) {
  const ValueId condition = t.in(v, 0), yes = t.in(v, 1), no = t.in(v, 2);
  if (!IsFloatComparison(t, condition) || t.Scalar(t.in(condition, 0)) != 0.0) return std::nullopt;
  const ValueId x = t.in(condition, 1);
  if (!VanishesWith(t, x, yes) || !VanishesWith(t, x, no)) return std::nullopt;
  return t.Op("Where", {t.Op("Less", {x, t.in(condition, 0)}), no, yes});
}

std::optional<ValueId> WhereOfMultiples(Terms& t, ValueId v) {
  const std::optional<Scaled> yes = AsScaled(t, t.in(v, 1)), no = AsScaled(t, t.in(v, 2));
  if (!yes.has_value() || !no.has_value()) return std::nullopt;
  if (yes->SameScale(*no)) return Scale(t, t.Op("Where", {t.in(v, 0), yes->x, no->x}), *yes);
  // One factor is kept where the factors differ: that of the first branch.
  if (yes->kind != Scaled::Kind::kTimes || no->kind != Scaled::Kind::kTimes) return std::nullopt;
  const std::optional<double> ratio = exact::Quotient(t.dtype(v), yes->factor, no->factor);
  if (!ratio.has_value()) return std::nullopt;
  return Scale(t, t.Op("Where", {t.in(v, 0), t.Mul(yes->x, *ratio), no->x}), *no);
}

std::optional<ValueId> MovedNegation(Terms& t, ValueId v) {
  const ValueId moved = t.in(v, 0);
  if (!t.Is(moved, "Not")) return std::nullopt;
  const Attributes attrs = t.node(v).attrs;
  const ValueId condition = t.in(moved, 0);
  return t.Unary("Not", t.Op(std::string(t.node(v).op->name), {condition}, attrs));
}

constexpr std::array<AxiomRule, 23> kLogicRules = {{
    {"boolean identities", "Not", &DoubleNot, Elements::kAny},
    {"moved negation", "Reshape", &MovedNegation, Elements::kAny, Domain::kAll},
    {"moved negation", "Transpose", &MovedNegation, Elements::kAny, Domain::kAll},
    {"moved negation", "Expand", &MovedNegation, Elements::kAny, Domain::kAll},
    {"moved negation", "Slice", &MovedNegation, Elements::kAny, Domain::kAll},
    {"boolean identities", "And", &Idempotent, Elements::kAny},
    {"boolean identities", "Or", &Idempotent, Elements::kAny},
    {"one order relation", "Or", &LessOrEqualByOr, Elements::kAny},
    {"one order relation", "Greater", &Greater, Elements::kAny},
    {"one order relation", "LessOrEqual", &LessOrEqual, Elements::kAny},
    {"one order relation", "GreaterOrEqual", &GreaterOrEqual, Elements::kAny},
    {"comparison with an infinity", "Less", &LessThanAnInfinity, Elements::kAny},
    {"comparison with an infinity", "Equal", &EqualToAnInfinity, Elements::kAny},
    {"test of a finite value", "IsNaN", &TestOfFinite, Elements::kAny, Domain::kAll},
    {"test of a finite value", "IsInf", &TestOfFinite, Elements::kAny, Domain::kAll},
    {"sum with a chosen infinity", "Add", &SumWithChosenInfinity, Elements::kFloats, Domain::kAll},
    {"nested choice", "Where", &NestedChoice, Elements::kAny, Domain::kAll},
    {"comparison of multiples", "Less", &LessOfMultiples, Elements::kAny},
    {"where of equal branches or a known condition", "Where", &KnownWhere, Elements::kAny,
     Domain::kAll},
    {"where as an extreme", "Where", &WhereAsExtreme, Elements::kAny},
    {"where as leaky relu", "Where", &WhereAsLeakyRelu, Elements::kAny},
    {"where at zero", "Where", &WhereAtZero, Elements::kAny},
    {"where of multiples", "Where", &WhereOfMultiples, Elements::kAny},
}};

}  // namespace

AxiomGroup LogicAxioms() { return {kLogicAxioms, kLogicRules}; }

}  // namespace mendel
