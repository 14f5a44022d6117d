// Sums and products: literals last and merged, signs and literal factors outermost.

#include <array>
#include <cmath>

#include "verifier/axioms/exact.h"
#include "verifier/axioms/rules.h"
#include "verifier/axioms/scaled.h"

namespace mendel {
namespace {

constexpr std::array<AxiomDescription, 7> kArithmeticAxioms = {{
    {"common factor", "c x + c y = c (x + y)", "Distributivity."},
    {"factor of a linear operator", "f(c x) = c f(x)",
     "f is linear in that operand; c is a literal, or -1. A kernel or matrix of equal elements c "
     "is "
     "c times one of ones."},
    {"merged literals",
     "(x + a) + b = x + (a + b), (x a) b = x (a b), x / a = x (1 / a), and their kin",
     "Associativity, where the sum, product or quotient of the literals is a number of the dtype "
     "without rounding."},
    {"neutral literal", "x + 0 = x, x * 1 = x, x / 1 = x, 1 / x is the reciprocal of x",
     "0 and 1 are neutral."},
    {"outer sign", "-(-x) = x, (-x) + y = y - x, (-x) y = -(x y), and their kin", "Ring axioms."},
    {"quotient as a product", "x / y = x (1 / y), where y is a literal the quotient",
     "The definition of division; both sides demand that y is not 0."},
    {"reciprocal of a reciprocal", "1 / (1 / y) = y, 1 / (x (1 / y)) = y (1 / x), for x, y > 0",
     "Fields; no demand is forgotten, since the denominators are known to be positive."},
}};

std::optional<ValueId> NeutralSum(Terms& t, ValueId v) {
  if (t.Number(t.in(v, 1)) == 0.0) return t.Fit(t.in(v, 0), t.shape(v));
  return std::nullopt;
}

std::optional<ValueId> MergeSum(Terms& t, ValueId v) {
  const ValueId a = t.in(v, 0);
  const std::optional<double> b = t.Scalar(t.in(v, 1));
  if (!b.has_value()) return std::nullopt;
  const bool nested = t.Is(a, "Add");
  const std::optional<double> inner = t.Scalar(nested ? t.in(a, 1) : a);
  if (!inner.has_value()) return std::nullopt;
  const std::optional<double> sum = exact::Sum(t.dtype(v), *inner, *b);
  if (!sum.has_value()) return std::nullopt;
  return nested ? t.Add(t.in(a, 0), *sum) : t.Literal(t.dtype(v), *sum);
}

std::optional<ValueId> LiteralDifference(Terms& t, ValueId v) {
  const ValueId a = t.in(v, 0), b = t.in(v, 1);
  if (const std::optional<double> subtrahend = t.Scalar(b)) return t.Add(a, -*subtrahend);
  if (!IsConstantTerm(t, a)) return std::nullopt;
  return t.Add(t.Unary("Neg", b), a);
}

std::optional<ValueId> SignOfSum(Terms& t, ValueId v) {
  const ValueId a = t.in(v, 0), b = t.in(v, 1);
  const bool minus_a = t.Is(a, "Neg"), minus_b = t.Is(b, "Neg");
  if (minus_a && minus_b) return t.Unary("Neg", t.Add(t.in(a, 0), t.in(b, 0)));
  if (minus_b) return t.Sub(a, t.in(b, 0));
  // A literal stays behind the sum.
  if (minus_a && !IsConstantTerm(t, b)) return t.Sub(b, t.in(a, 0));
  return std::nullopt;
}

std::optional<ValueId> SignOfDifference(Terms& t, ValueId v) {
  const ValueId a = t.in(v, 0), b = t.in(v, 1);
  const bool minus_a = t.Is(a, "Neg"), minus_b = t.Is(b, "Neg");
  if (minus_a && minus_b) return t.Sub(t.in(b, 0), t.in(a, 0));
  if (minus_b) return t.Add(a, t.in(b, 0));
  if (minus_a) return t.Unary("Neg", t.Add(t.in(a, 0), b));
  return std::nullopt;
}

std::optional<ValueId> SignOfNegative(Terms& t, ValueId v) {
  const ValueId x = t.in(v, 0);
  if (t.Is(x, "Neg")) return t.in(x, 0);
  if (t.Is(x, "Sub")) return t.Sub(t.in(x, 1), t.in(x, 0));
  if (const std::optional<double> number = t.Scalar(x)) return t.Literal(t.dtype(x), -*number);
  const std::optional<double> summand = t.Is(x, "Add") ? t.Scalar(t.in(x, 1)) : std::nullopt;
  if (summand.has_value()) return t.Add(t.Unary("Neg", t.in(x, 0)), -*summand);
  return std::nullopt;
}

/// Products and quotients.
std::optional<ValueId> SignOfProduct(Terms& t, ValueId v) {
  const ValueId a = t.in(v, 0), b = t.in(v, 1);
  const std::string op(t.node(v).op->name);
  if (t.Is(a, "Neg")) return t.Unary("Neg", t.Op(op, {t.in(a, 0), b}));
  if (t.Is(b, "Neg")) return t.Unary("Neg", t.Op(op, {a, t.in(b, 0)}));
  const std::optional<double> number = t.Scalar(b);
  if (number.has_value() && *number < 0)
    return t.Unary("Neg", t.Op(op, {a, t.Literal(t.dtype(v), -*number)}));
  return std::nullopt;
}

std::optional<ValueId> NeutralFactor(Terms& t, ValueId v) {
  if (t.Number(t.in(v, 1)) == 1.0) return t.Fit(t.in(v, 0), t.shape(v));
  if (t.Is(v, "Div") && t.Number(t.in(v, 0)) == 1.0)
    return t.Unary("Reciprocal", t.Fit(t.in(v, 1), t.shape(v)));
  return std::nullopt;
}

/// x * times / over, the literals merged where that is exact.
ValueId Ratio(Terms& t, ValueId x, double times, double over) {
  const DType dtype = t.dtype(x);
  if (const auto ratio = exact::Quotient(dtype, times, over)) return t.Mul(x, *ratio);
  if (const auto ratio = exact::Quotient(dtype, over, times)) return t.Div(x, *ratio);
  return t.Div(t.Mul(x, times), over);
}

std::optional<ValueId> MergeProduct(Terms& t, ValueId v) {
  const ValueId a = t.in(v, 0);
  const std::optional<double> b = t.Scalar(t.in(v, 1));
  if (!b.has_value() || !(*b > 0)) return std::nullopt;
  const DType dtype = t.dtype(v);
  if (const std::optional<double> number = t.Scalar(a)) {
    const auto product = exact::Product(dtype, *number, *b);
    return product.has_value() ? std::optional(t.Literal(dtype, *product)) : std::nullopt;
  }
  const std::optional<Scaled> inner = AsScaled(t, a);
  if (!inner.has_value()) return std::nullopt;
  if (inner->kind == Scaled::Kind::kOver) return Ratio(t, inner->x, *b, inner->factor);
  const auto product = exact::Product(dtype, inner->factor, *b);
  if (inner->kind != Scaled::Kind::kTimes || !product.has_value()) return std::nullopt;
  return t.Mul(inner->x, *product);
}

std::optional<ValueId> MergeQuotient(Terms& t, ValueId v) {
  const ValueId a = t.in(v, 0), b = t.in(v, 1);
  const DType dtype = t.dtype(v);
  const std::optional<double> over = t.Scalar(b);
  if (!over.has_value() || !(*over > 0)) return std::nullopt;
  if (const std::optional<double> number = t.Scalar(a)) {
    const auto quotient = exact::Quotient(dtype, *number, *over);
    return quotient.has_value() ? std::optional(t.Literal(dtype, *quotient)) : std::nullopt;
  }
  const auto inverse = exact::Quotient(dtype, 1, *over);
  if (inverse.has_value()) return t.Mul(a, *inverse);
  const std::optional<Scaled> inner = AsScaled(t, a);
  if (!inner.has_value()) return std::nullopt;
  if (inner->kind == Scaled::Kind::kTimes) {
    const bool merges = exact::Quotient(dtype, inner->factor, *over).has_value() ||
                        exact::Quotient(dtype, *over, inner->factor).has_value();
    return merges ? std::optional(Ratio(t, inner->x, inner->factor, *over)) : std::nullopt;
  }
  const auto product = exact::Product(dtype, inner->factor, *over);
  if (inner->kind != Scaled::Kind::kOver || !product.has_value()) return std::nullopt;
  return t.Div(inner->x, *product);
}

std::optional<ValueId> FactorOfReciprocal(Terms& t, ValueId v) {
  const std::optional<Scaled> factor = AsScaled(t, t.in(v, 0));
  if (!factor.has_value()) return std::nullopt;
  const ValueId inverse = t.Unary("Reciprocal", factor->x);
  if (factor->kind == Scaled::Kind::kNegated) return t.Unary("Neg", inverse);
  return factor->kind == Scaled::Kind::kTimes ? t.Div(inverse, factor->factor)
                                              : t.Mul(inverse, factor->factor);
}

std::optional<ValueId> ReciprocalOfReciprocal(Terms& t, ValueId v) {
  const ValueId x = t.in(v, 0);
  if (t.Is(x, "Reciprocal") && t.IsPositive(t.in(x, 0))) return t.in(x, 0);
  for (size_t k = 0; k < 2 && t.Is(x, "Mul"); ++k) {
    const ValueId inverse = t.in(x, k), other = t.in(x, 1 - k);
    if (!t.Is(inverse, "Reciprocal") || !t.IsPositive(inverse) || !t.IsPositive(other)) continue;
    return t.Mul(t.in(inverse, 0), t.Unary("Reciprocal", other));
  }
  return std::nullopt;
}

std::optional<ValueId> QuotientAsProduct(Terms& t, ValueId v) {
  const ValueId y = t.in(v, 1);
  if (t.Scalar(y).has_value()) return std::nullopt;
  return t.Mul(t.in(v, 0), t.Unary("Reciprocal", y));
}

std::optional<ValueId> QuotientByLiteral(Terms& t, ValueId v) {
  for (size_t k = 0; k < 2; ++k) {
    const ValueId inverse = t.in(v, 1 - k);
    if (t.Is(inverse, "Reciprocal") && t.Scalar(t.in(inverse, 0)).has_value())
      return t.Div(t.Fit(t.in(v, k), t.shape(v)), t.in(inverse, 0));
  }
  return std::nullopt;
}

std::optional<ValueId> CommonFactor(Terms& t, ValueId v) {
  const std::optional<Scaled> a = AsScaled(t, t.in(v, 0)), b = AsScaled(t, t.in(v, 1));
  if (!a.has_value() || !b.has_value() || !a->SameScale(*b) || a->kind == Scaled::Kind::kNegated)
    return std::nullopt;
  return Scale(t, t.Op(std::string(t.node(v).op->name), {a->x, b->x}), *a);
}

/// c times ones: a kernel or matrix whose elements are all c.
std::optional<Scaled> AsMultipleOfOnes(Terms& t, ValueId v) {
  ValueId stored = v;
  while (t.Is(stored, "Reshape") || t.Is(stored, "Transpose") || t.Is(stored, "Expand"))
    stored = t.in(stored, 0);
  if (t.shape(v).empty() || !IsConstantTerm(t, stored)) return std::nullopt;
  const std::optional<double> number = t.Number(stored);
  if (!number.has_value() || !std::isfinite(*number) || *number == 0 || *number == 1)
    return std::nullopt;
  if (*number < 0) {
    const ValueId positive = t.Constant(Tensor::Filled(t.type(v), -*number), "");
    return Scaled{Scaled::Kind::kNegated, 1, positive};
  }
  return Scaled{Scaled::Kind::kTimes, *number, t.Constant(Tensor::Filled(t.type(v), 1), "")};
}

std::optional<ValueId> LinearFactor(Terms& t, ValueId v) {
  const Node node = t.node(v);
  if (node.op->linear_inputs == nullptr || node.outputs.size() != 1 || node.op->name == "Neg")
    return std::nullopt;
  const std::vector<TensorType> types = t.InputTypes(v);
  const uint32_t linear = node.op->linear_inputs({types, node.attrs, node.outputs});
  for (size_t k = 0; k < std::min<size_t>(node.inputs.size(), 32); ++k) {
    if ((linear >> k & 1) == 0 || !IsFloat(types[k].dtype)) continue;
    std::optional<Scaled> factor = AsScaled(t, node.inputs[k]);
    const bool contracts =
        node.op->name == "Conv" || node.op->name == "ConvTranspose" || node.op->name == "MatMul";
    if (!factor.has_value() && contracts) factor = AsMultipleOfOnes(t, node.inputs[k]);
    if (!factor.has_value()) continue;
    // Two literals that do not merge stay where they are.
    if (node.inputs.size() == 2 && t.Scalar(node.inputs[1 - k]).has_value() &&
        (node.op->name == "Mul" || node.op->name == "Div")) {
      continue;
    }
    if (RoundTo(t.dtype(v), factor->factor) != factor->factor) continue;
    std::vector<ValueId> inputs = node.inputs;
    inputs[k] = factor->x;
    return Scale(t, t.Op(node.op->name, std::move(inputs), node.attrs), *factor);
  }
  return std::nullopt;
}

constexpr std::array<AxiomRule, 20> kArithmeticRules = {{
    {"neutral literal", "Add", &NeutralSum},
    {"neutral literal", "Sub", &NeutralSum},
    {"neutral literal", "Mul", &NeutralFactor},
    {"neutral literal", "Div", &NeutralFactor},
    {"outer sign", "Neg", &SignOfNegative},
    {"outer sign", "Add", &SignOfSum},
    {"outer sign", "Sub", &SignOfDifference},
    {"outer sign", "Mul", &SignOfProduct},
    {"outer sign", "Div", &SignOfProduct},
    {"merged literals", "Sub", &LiteralDifference},
    {"merged literals", "Add", &MergeSum},
    {"merged literals", "Mul", &MergeProduct},
    {"merged literals", "Div", &MergeQuotient},
    {"merged literals", "Reciprocal", &FactorOfReciprocal},
    {"quotient as a product", "Div", &QuotientAsProduct},
    {"quotient as a product", "Mul", &QuotientByLiteral},
    {"reciprocal of a reciprocal", "Reciprocal", &ReciprocalOfReciprocal},
    {"common factor", "Add", &CommonFactor},
    {"common factor", "Sub", &CommonFactor},
    {"factor of a linear operator", "*", &LinearFactor},
}};

}  // namespace

AxiomGroup ArithmeticAxioms() { return {kArithmeticAxioms, kArithmeticRules}; }

}  // namespace mendel
