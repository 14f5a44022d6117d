// Correctly rounded literals stand for their constants: 1/9, the square root of 2, ... Every use is
// counted by name, because a verdict that rests on one holds up to that rounding.

#include <array>
#include <cmath>
#include <optional>

#include "base/status.h"
#include "verifier/axioms/exact.h"
#include "verifier/axioms/rules.h"
#include "verifier/axioms/scaled.h"

namespace mendel {
namespace {

constexpr std::array<AxiomDescription, 2> kLiteralsAxioms = {{
    {"rounded literal",
     "x * round(1/k) = x / k, x / round(sqrt k) = x * round(1/sqrt k), and their kin",
     "The literal is the dtype's number nearest to the constant that it stands for; the use is "
     "reported."},
    {"square of a rounded root", "x * a * a = x * sqrt(k) where a = round(k^(1/4)), and their kin",
     "The literal stands for the root; the use is reported."},
}};

constexpr int kLargestDivisor = 4095;

/// sign 1: radicand^(1/2), sign -1: radicand^(-1/2).
double Root(int radicand, int sign) {
  const double root = std::sqrt(static_cast<double>(radicand));
  return sign > 0 ? root : root / radicand;
}

/// n = outer^2 * inner, inner without square factors.
struct Radicand {
  int outer = 1;
  int inner = 1;
};
Radicand Split(int n) {
  Radicand split{1, n};
  for (int d = 2; d * d <= split.inner; ++d) {
    while (split.inner % (d * d) == 0) {
      split.inner /= d * d;
      split.outer *= d;
    }
  }
  return split;
}

/// The literal is 2^exponent times the dtype's nearest number to `constant`. A number of f64 that
/// is only f32's nearest is another number.
bool IsRounded(DType dtype, double literal, double constant, int exponent) {
  return std::ldexp(literal, -exponent) == RoundTo(dtype, constant);
}

/// literal = 2^exponent round(1/divisor), the divisor odd and not 1.
struct RoundedInverse {
  int divisor = 1;
  int exponent = 0;
};
std::optional<RoundedInverse> AsInverse(DType dtype, double literal) {
  int exponent = 0;
  const double mantissa = std::frexp(literal, &exponent);  // in [1/2, 1)
  for (int bits = 2; bits <= 12; ++bits) {
    const int divisor = static_cast<int>(std::lround(std::ldexp(1 / mantissa, bits - 1)));
    if (divisor % 2 == 0 || divisor > kLargestDivisor || divisor == 1) continue;
    const int shift = exponent + bits - 1;
    if (IsRounded(dtype, literal, 1.0 / divisor, shift)) return RoundedInverse{divisor, shift};
  }
  return std::nullopt;
}

/// literal = 2^exponent round(radicand^(sign / 2)), the radicand not a square.
struct RoundedRoot {
  int radicand = 1;
  int sign = 1;
  int exponent = 0;
};
std::optional<RoundedRoot> AsRoot(DType dtype, double literal) {
  int exponent = 0;
  const double mantissa = std::frexp(literal, &exponent);
  for (const int sign : {1, -1}) {
    // mantissa * 2^k is a root of the square of itself, for the k that make that whole.
    const double square = sign > 0 ? mantissa * mantissa : 1 / (mantissa * mantissa);
    for (int k = 0; k <= 5; ++k) {
      const int radicand = static_cast<int>(std::lround(std::ldexp(square, 2 * k)));
      if (radicand < 2 || radicand > exact::kLargestRadicand || exact::IsSquare(radicand)) continue;
      const int shift = exponent - sign * k;
      if (IsRounded(dtype, literal, Root(radicand, sign), shift))
        return RoundedRoot{radicand, sign, shift};
    }
  }
  return std::nullopt;
}

/// literal = 2^exponent round(radicand^(sign / 4)), the radicand not a square.
std::optional<RoundedRoot> AsFourthRoot(DType dtype, double literal) {
  int exponent = 0;
  const double mantissa = std::frexp(literal, &exponent);
  for (const int sign : {1, -1}) {
    const double power = std::pow(mantissa, 4 * sign);
    for (int k = 0; k <= 2; ++k) {
      const int radicand = static_cast<int>(std::lround(std::ldexp(power, 4 * k)));
      if (radicand < 2 || radicand > exact::kLargestRadicand || exact::IsSquare(radicand)) continue;
      const int shift = exponent - sign * k;
      if (IsRounded(dtype, literal, std::pow(radicand, 0.25 * sign), shift))
        return RoundedRoot{radicand, sign, shift};
    }
  }
  return std::nullopt;
}

/// 1 / sqrt(inner) for an `inner` without square factors, which is the only root that canonical
/// programs hold.
double CanonicalRoot(DType dtype, int inner) { return RoundTo(dtype, Root(inner, -1)); }

ValueId TimesPowerOfTwo(Terms& t, ValueId x, int exponent) {
  return t.Mul(x, std::ldexp(1.0, exponent));
}

/// x * root, written with CanonicalRoot, or nullopt if `literal` is that already.
std::optional<ValueId> TimesRoot(Terms& t, ValueId x, RoundedRoot root, double literal) {
  const DType dtype = t.dtype(x);
  const Radicand radicand = Split(root.radicand);
  const double canonical = CanonicalRoot(dtype, radicand.inner);
  // sqrt(2) = 2 / sqrt(2): powers of two merge with the literal.
  int exponent = root.exponent;
  int whole = root.sign > 0 ? radicand.outer * radicand.inner : 1;
  int divisor = root.sign > 0 ? 1 : radicand.outer;
  for (; whole % 2 == 0; whole /= 2) ++exponent;
  for (; divisor % 2 == 0; divisor /= 2) --exponent;
  const double factor = std::ldexp(canonical, exponent);
  if (whole == 1 && divisor == 1 && factor == literal) return std::nullopt;
  if (RoundTo(dtype, factor) != factor) return std::nullopt;
  t.Use(Cat("literal ", root.sign > 0 ? "sqrt(" : "1/sqrt(", root.radicand, ")"));
  ValueId result = x;
  if (whole > 1) result = t.Mul(result, whole);
  if (divisor > 1) result = t.Div(result, divisor);
  return t.Mul(result, factor);
}

std::optional<ValueId> RoundedFactor(Terms& t, ValueId v) {
  const std::optional<double> literal = t.Scalar(t.in(v, 1));
  const DType dtype = t.dtype(v);
  if (!literal.has_value() || !(*literal > 0) || t.Scalar(t.in(v, 0)).has_value() ||
      !t.MayRoundIn(v) || t.KeepsFactors())
    return std::nullopt;
  if (const auto inverse = AsInverse(dtype, *literal)) {
    t.Use(Cat("literal 1/", inverse->divisor));
    return t.Div(TimesPowerOfTwo(t, t.in(v, 0), inverse->exponent), inverse->divisor);
  }
  if (const auto root = AsRoot(dtype, *literal)) return TimesRoot(t, t.in(v, 0), *root, *literal);
  return std::nullopt;
}

std::optional<ValueId> RoundedDivisor(Terms& t, ValueId v) {
  const std::optional<double> literal = t.Scalar(t.in(v, 1));
  const DType dtype = t.dtype(v);
  if (!literal.has_value() || !(*literal > 0) || !t.MayRoundIn(v) || t.KeepsFactors())
    return std::nullopt;
  const ValueId x = t.in(v, 0);
  if (const auto inverse = AsInverse(dtype, *literal)) {
    t.Use(Cat("literal 1/", inverse->divisor));
    return TimesPowerOfTwo(t, t.Mul(x, inverse->divisor), -inverse->exponent);
  }
  if (const auto root = AsRoot(dtype, *literal)) {
    return TimesRoot(t, x, {root->radicand, -root->sign, -root->exponent}, 0);
  }
  return std::nullopt;
}

/// x a a or x / a / a.
std::optional<ValueId> SquareOfRoundedRoot(Terms& t, ValueId v) {
  const std::optional<Scaled> outer = AsScaled(t, v);
  const std::optional<Scaled> inner = outer.has_value() ? AsScaled(t, outer->x) : std::nullopt;
  if (!inner.has_value() || !inner->SameScale(*outer) || !t.MayRoundIn(v) || t.KeepsFactors())
    return std::nullopt;
  const DType dtype = t.dtype(v);
  const int direction = outer->kind == Scaled::Kind::kTimes ? 1 : -1;
  if (const auto root = AsRoot(dtype, outer->factor)) {
    t.Use(Cat("literal sqrt(", root->radicand, ")"));
    const ValueId x = TimesPowerOfTwo(t, inner->x, 2 * root->exponent * direction);
    return direction * root->sign > 0 ? t.Mul(x, root->radicand) : t.Div(x, root->radicand);
  }
  if (const auto root = AsFourthRoot(dtype, outer->factor)) {
    t.Use(Cat("literal ", root->radicand, "^(1/4)"));
    const ValueId x = TimesPowerOfTwo(t, inner->x, 2 * root->exponent * direction);
    return t.Mul(x, RoundTo(dtype, Root(root->radicand, direction * root->sign)));
  }
  return std::nullopt;
}

constexpr std::array<AxiomRule, 4> kLiteralsRules = {{
    {"square of a rounded root", "Mul", &SquareOfRoundedRoot},
    {"square of a rounded root", "Div", &SquareOfRoundedRoot},
    {"rounded literal", "Mul", &RoundedFactor},
    {"rounded literal", "Div", &RoundedDivisor},
}};

}  // namespace

AxiomGroup LiteralAxioms() { return {kLiteralsAxioms, kLiteralsRules}; }

}  // namespace mendel
