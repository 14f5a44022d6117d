// Correctly rounded literals stand for their constants: 1/9, the square root of 2, ... Every use is
// counted by name, because a verdict that rests on one holds up to that rounding.

#include <array>
#include <cmath>
#include <optional>

#include "base/status.h"
#include "verifier/axioms/rules.h"
#include "verifier/axioms/scaled.h"

namespace mendel {
namespace {

constexpr std::array<AxiomDescription, 3> kLiteralsAxioms = {{
    {"root of a literal", "Sqrt(n) is the number whose square n is",
     "The root is exact, or the correctly rounded literal for it."},
    {"rounded literal",
     "x * round(1/k) = x / k, x / round(sqrt k) = x * round(1/sqrt k), and their kin",
     "The literal is the dtype's number nearest to the constant that it stands for; the use is "
     "reported."},
    {"square of a rounded root", "x * a * a = x * sqrt(k) where a = round(k^(1/4)), and their kin",
     "The literal stands for the root; the use is reported."},
}};

constexpr int kLargestDivisor = 4095;
constexpr int kLargestRadicand = 1023;

/// The 16-bit formats have fewer numbers than the table has constants.
bool MayRound(const Terms& t, ValueId v) {
  return t.MayRound() && (t.dtype(v) == DType::kF32 || t.dtype(v) == DType::kF64);
}

/// sign 1: radicand^(1/2), sign -1: radicand^(-1/2).
double Root(int radicand, int sign) {
  const double root = std::sqrt(static_cast<double>(radicand));
  return sign > 0 ? root : root / radicand;
}

bool IsSquare(int n) {
  const int root = static_cast<int>(std::lround(std::sqrt(n)));
  return root * root == n;
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
      if (radicand < 2 || radicand > kLargestRadicand || IsSquare(radicand)) continue;
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
      if (radicand < 2 || radicand > kLargestRadicand || IsSquare(radicand)) continue;
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

/// x * root, written with CanonicalRoot, or nothing when `literal` is that already.
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
      !MayRound(t, v))
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
  if (!literal.has_value() || !(*literal > 0) || !MayRound(t, v)) return std::nullopt;
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
  if (!inner.has_value() || !inner->SameScale(*outer) || !MayRound(t, v)) return std::nullopt;
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

/// The constant that a literal stands for where it is the dtype's nearest number to it.
double Meant(const Terms& t, ValueId v, double literal) {
  constexpr double kPi = 3.14159265358979323846;
  return t.MayRound() && literal == RoundTo(t.dtype(v), kPi) ? kPi : literal;
}

/// The number that a quotient or product of literals is, in double precision.
std::optional<double> NumberOf(const Terms& t, ValueId v) {
  if (const std::optional<double> number = t.Scalar(v)) return number;
  if (!t.Is(v, "Div") && !t.Is(v, "Mul")) return std::nullopt;
  const std::optional<double> a = t.Scalar(t.in(v, 0)), b = t.Scalar(t.in(v, 1));
  if (!a.has_value() || !b.has_value()) return std::nullopt;
  const double x = Meant(t, v, *a), y = Meant(t, v, *b);
  return t.Is(v, "Div") ? x / y : x * y;
}

std::optional<ValueId> RootOfLiteral(Terms& t, ValueId v) {
  const std::optional<double> number = NumberOf(t, t.in(v, 0));
  if (!number.has_value() || *number < 0) return std::nullopt;
  if (!t.Scalar(t.in(v, 0)).has_value()) {
    const double nearest = RoundTo(t.dtype(v), std::sqrt(*number));
    if (!MayRound(t, v)) return std::nullopt;
    t.Use(Cat("literal sqrt(", *number, ")"));
    return t.Literal(t.dtype(v), nearest);
  }
  const double root = std::sqrt(*number);
  const bool exact = std::fma(root, root, -*number) == 0 && (*number == 0 || *number > 0x1p-900);
  if (exact && RoundTo(t.dtype(v), root) == root) return t.Literal(t.dtype(v), root);
  const bool whole = *number == std::floor(*number) && *number <= kLargestRadicand;
  if (!whole || !MayRound(t, v) || IsSquare(static_cast<int>(*number))) return std::nullopt;
  t.Use(Cat("literal sqrt(", *number, ")"));
  return t.Literal(t.dtype(v), RoundTo(t.dtype(v), root));
}

constexpr std::array<AxiomRule, 5> kLiteralsRules = {{
    {"root of a literal", "Sqrt", &RootOfLiteral},
    {"square of a rounded root", "Mul", &SquareOfRoundedRoot},
    {"square of a rounded root", "Div", &SquareOfRoundedRoot},
    {"rounded literal", "Mul", &RoundedFactor},
    {"rounded literal", "Div", &RoundedDivisor},
}};

}  // namespace

AxiomGroup LiteralAxioms() { return {kLiteralsAxioms, kLiteralsRules}; }

}  // namespace mendel
