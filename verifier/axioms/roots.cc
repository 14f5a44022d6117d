// Powers and roots: whole powers are products, half ones products with a square root.

#include <array>
#include <cmath>

#include "verifier/axioms/rules.h"

namespace mendel {
namespace {

constexpr std::array<AxiomDescription, 4> kRootsAxioms = {{
    {"power with a literal exponent",
     "x^0 = 1, x^n = x ... x, x^(n + 1/2) = x^n sqrt(x), x^-a = 1 / x^a, for a up to 16",
     "Definitions; a negative exponent demands x > 0 or x not 0 on both sides, a half one x >= 0."},
    {"root of a product", "sqrt(x y) = sqrt(x) sqrt(y), sqrt(1 / x) = 1 / sqrt(x)",
     "Multiplicativity, where neither factor is negative, or one is positive, so that both sides "
     "demand the same of the other."},
    {"root of a square", "sqrt(x x) = abs(x)", "The root of a square is the number's magnitude."},
    {"square of a root", "sqrt(x) sqrt(x) = x, x (1 / sqrt(x)) = sqrt(x), and the reciprocals",
     "x is known not to be negative (positive, where it is a denominator)."},
}};

constexpr double kLargestExponent = 16;

std::optional<ValueId> LiteralPower(Terms& t, ValueId v) {
  const ValueId x = t.in(v, 0);
  const std::optional<double> exponent = t.Number(t.in(v, 1));
  if (!exponent.has_value() || t.shape(x) != t.shape(v)) return std::nullopt;
  const double size = std::abs(*exponent);
  const double whole = std::floor(size);
  if (size > kLargestExponent || (size != whole && size != whole + 0.5)) return std::nullopt;
  const Shape shape = t.shape(v);
  const int n = static_cast<int>(whole);
  if (size == 0) return t.Fit(t.Literal(t.dtype(v), 1), shape);
  ValueId power = size == whole ? t.Power(x, n) : t.Unary("Sqrt", x);
  if (size != whole && n > 0) power = t.Mul(t.Power(x, n), power);
  return *exponent > 0 ? power : t.Unary("Reciprocal", power);
}

std::optional<ValueId> RootOfSquare(Terms& t, ValueId v) {
  const ValueId x = t.in(v, 0);
  if (!t.Is(x, "Mul") || t.in(x, 0) != t.in(x, 1)) return std::nullopt;
  return t.Unary("Abs", t.in(x, 0));
}

std::optional<ValueId> RootOfProduct(Terms& t, ValueId v) {
  const ValueId x = t.in(v, 0);
  const bool product = t.Is(x, "Mul");
  if (!product && !t.Is(x, "Div")) return std::nullopt;
  const ValueId a = t.in(x, 0), b = t.in(x, 1);
  // x y >= 0 with x > 0 demands y >= 0, as the root of y does.
  const bool safe = t.IsPositive(b) ||
                    (product && (t.IsPositive(a) || (t.IsNonNegative(a) && t.IsNonNegative(b))));
  if (!safe) return std::nullopt;
  return t.Op(product ? "Mul" : "Div", {t.Unary("Sqrt", a), t.Unary("Sqrt", b)});
}

std::optional<ValueId> RootOfReciprocal(Terms& t, ValueId v) {
  const ValueId x = t.in(v, 0);
  if (!t.Is(x, "Reciprocal")) return std::nullopt;
  return t.Unary("Reciprocal", t.Unary("Sqrt", t.in(x, 0)));
}

std::optional<ValueId> SquareOfRoot(Terms& t, ValueId v) {
  const ValueId a = t.in(v, 0), b = t.in(v, 1);
  const auto is_root = [&](ValueId root) { return t.Is(root, "Sqrt"); };
  if (a == b && is_root(a) && t.IsNonNegative(t.in(a, 0))) return t.in(a, 0);
  const auto is_inverse_root = [&](ValueId y) {
    return t.Is(y, "Reciprocal") && is_root(t.in(y, 0));
  };
  if (a == b && is_inverse_root(a) && t.IsPositive(t.in(t.in(a, 0), 0)))
    return t.Unary("Reciprocal", t.in(t.in(a, 0), 0));
  for (size_t k = 0; k < 2; ++k) {
    const ValueId x = t.in(v, k), y = t.in(v, 1 - k);
    if (is_inverse_root(y) && t.in(t.in(y, 0), 0) == x && t.IsPositive(x)) return t.in(y, 0);
  }
  return std::nullopt;
}

constexpr std::array<AxiomRule, 5> kRootsRules = {{
    {"power with a literal exponent", "Pow", &LiteralPower, Elements::kFloats},
    {"root of a square", "Sqrt", &RootOfSquare},
    {"root of a product", "Sqrt", &RootOfProduct},
    {"square of a root", "Mul", &SquareOfRoot},
    {"root of a product", "Sqrt", &RootOfReciprocal},
}};

}  // namespace

AxiomGroup RootAxioms() { return {kRootsAxioms, kRootsRules}; }

}  // namespace mendel
