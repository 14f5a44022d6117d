// Activation functions by their definitions in smaller operators.

#include <array>
#include <vector>

#include "verifier/axioms/clips.h"
#include "verifier/axioms/rules.h"
#include "verifier/axioms/scaled.h"

namespace mendel {
namespace {

constexpr std::array<AxiomDescription, 9> kActivationsAxioms = {{
    {"elu, celu and selu by exponentials",
     "elu(x) = x < 0 ? a (exp(x) - 1) : x, celu(x) = a elu(x / a) with a = 1, a > 0, selu(x) = g "
     "elu(x)",
     "Definitions."},
    {"elu as a sum of extremes",
     "max(x, 0) + a min(exp(y) - 1, 0) = a elu(y), elu(y) = y < 0 ? exp(y) - 1 : y, where x = a y, "
     "a > 0",
     "exp(y) - 1 has the sign of y, so that one of the two terms is 0."},
    {"gelu by erf", "gelu(x) = x / 2 (erf(x / sqrt 2) + 1)",
     "The definition; the literal for 1 / sqrt 2 is reported."},
    {"gelu by tanh", "gelu(x) = x / 2 (tanh(sqrt(2 / pi) (x + 0.044715 x^3)) + 1)",
     "The definition of the approximation; its literals are reported."},
    {"hard sigmoid and hard swish by clip",
     "hard-sigmoid(x) = Clip(a x + b, 0, 1), hard-swish(x) = x Clip(x / 6 + 1/2, 0, 1)",
     "Definitions."},
    {"leaky relu by relu",
     "leaky-relu(x) = Relu(x) + a (x - Relu(x)), likewise with a tensor of slopes",
     "x - Relu(x) = min(x, 0), and one of the two terms is 0. The slopes are finite for every "
     "input."},
    {"leaky relu as an extreme",
     "max(x, a x) = Relu(x) + a (x - Relu(x)) for a <= 1, a Relu(x) + (x - Relu(x)) for a >= 1; "
     "min the other way round",
     "Case distinction by the sign of x; both are 0 at 0."},
    {"softsign by absolute value", "softsign(x) = x / (abs(x) + 1)",
     "The definition; abs(x) + 1 > 0."},
    {"thresholded relu by where", "thresholded-relu(x) = a < x ? x : 0", "The definition."},
}};

ValueId EluOf(Terms& t, ValueId x, ValueId alpha) {
  const ValueId negative = t.Op("Less", {x, t.Literal(t.dtype(x), 0)});
  return t.Op("Where", {negative, t.Mul(t.Add(t.Unary("Exp", x), -1), alpha), x});
}

std::optional<ValueId> Elu(Terms& t, ValueId v) {
  const std::optional<ValueId> alpha = t.Attribute(v, "alpha");
  return alpha.has_value() ? std::optional(EluOf(t, t.in(v, 0), *alpha)) : std::nullopt;
}

std::optional<ValueId> Celu(Terms& t, ValueId v) {
  const std::optional<ValueId> alpha = t.Attribute(v, "alpha");
  if (!alpha.has_value() || !t.IsPositive(*alpha)) return std::nullopt;
  return t.Mul(EluOf(t, t.Div(t.in(v, 0), *alpha), t.Literal(t.dtype(v), 1)), *alpha);
}

/// The y and the literal a of a min(exp(y) - 1, 0).
struct NegativePart {
  ValueId y;
  double scale = 1;
};

/// The y of min(exp(y), 1).
std::optional<ValueId> AsLimitedExponential(const Terms& t, ValueId value) {
  const std::optional<Interval> limited = AsInterval(t, value);
  if (!limited.has_value() || !limited->OnlyHigh() || limited->high != 1) return std::nullopt;
  return t.Is(limited->x, "Exp") ? std::optional(t.in(limited->x, 0)) : std::nullopt;
}

/// The canonical form of `value`, or of -value where it is `subtracted`, is a (min(exp(y), 1) - 1).
std::optional<NegativePart> AsNegativePart(const Terms& t, ValueId value, bool subtracted) {
  NegativePart part;
  if (const std::optional<Scaled> scale = AsScaled(t, value); scale.has_value()) {
    if (scale->kind != Scaled::Kind::kTimes) return std::nullopt;
    part.scale = scale->factor;
    value = scale->x;
  }
  if (!t.Is(value, "Add") || t.Scalar(t.in(value, 1)) != (subtracted ? 1.0 : -1.0))
    return std::nullopt;
  ValueId limited = t.in(value, 0);
  if (subtracted) {
    if (!t.Is(limited, "Neg")) return std::nullopt;
    limited = t.in(limited, 0);
  }
  const std::optional<ValueId> y = AsLimitedExponential(t, limited);
  if (!y.has_value()) return std::nullopt;
  part.y = *y;
  return part;
}

/// The sum of `relu` and the negative part, where both are of one value.
std::optional<ValueId> EluOfParts(Terms& t, ValueId relu, const NegativePart& part) {
  const DType dtype = t.dtype(relu);
  if (RoundTo(dtype, part.scale) != part.scale) return std::nullopt;
  if (t.Is(relu, "Relu") && t.in(relu, 0) == part.y)
    return EluOf(t, part.y, t.Literal(dtype, part.scale));
  const auto times = [&](ValueId x) { return part.scale == 1 ? x : t.Mul(x, part.scale); };
  if (relu != times(t.Unary("Relu", part.y))) return std::nullopt;
  return times(EluOf(t, part.y, t.Literal(dtype, 1)));
}

std::optional<ValueId> EluAsExtremes(Terms& t, ValueId v) {
  if (!IsFloat(t.dtype(v))) return std::nullopt;
  for (size_t k = 0; k < 2; ++k) {
    const bool subtracted = t.Is(v, "Sub");
    if (subtracted && k == 1) break;
    const std::optional<NegativePart> part = AsNegativePart(t, t.in(v, 1 - k), subtracted);
    if (!part.has_value() || t.shape(t.in(v, 1 - k)) != t.shape(t.in(v, k))) continue;
    const std::optional<ValueId> elu = EluOfParts(t, t.in(v, k), *part);
    if (elu.has_value()) return elu;
  }
  return std::nullopt;
}

std::optional<ValueId> Selu(Terms& t, ValueId v) {
  const std::optional<ValueId> alpha = t.Attribute(v, "alpha"), gamma = t.Attribute(v, "gamma");
  if (!alpha.has_value() || !gamma.has_value()) return std::nullopt;
  return t.Mul(EluOf(t, t.in(v, 0), *alpha), *gamma);
}

std::optional<ValueId> GeluByErf(Terms& t, ValueId v) {
  constexpr double kInverseRootOfTwo = 0.70710678118654752440;
  const ValueId x = t.in(v, 0);
  if (t.node(v).attrs.Str("approximate") != "none") return std::nullopt;
  const std::optional<ValueId> factor =
      t.RoundedLiteral(t.dtype(v), kInverseRootOfTwo, "1/sqrt(2)");
  if (!factor.has_value()) return std::nullopt;
  return t.Mul(t.Mul(x, 0.5), t.Add(t.Unary("Erf", t.Mul(x, *factor)), 1));
}

std::optional<ValueId> GeluByTanh(Terms& t, ValueId v) {
  constexpr double kRootOfTwoOverPi = 0.79788456080286535588;
  const ValueId x = t.in(v, 0);
  const DType dtype = t.dtype(v);
  if (t.node(v).attrs.Str("approximate") != "tanh") return std::nullopt;
  const std::optional<ValueId> cubic = t.RoundedLiteral(dtype, 0.044715, "0.044715");
  const std::optional<ValueId> factor = t.RoundedLiteral(dtype, kRootOfTwoOverPi, "sqrt(2/pi)");
  if (!cubic.has_value() || !factor.has_value()) return std::nullopt;
  const ValueId sum = t.Add(x, t.Mul(t.Mul(t.Mul(x, x), x), *cubic));
  return t.Mul(t.Mul(x, 0.5), t.Add(t.Unary("Tanh", t.Mul(sum, *factor)), 1));
}

std::optional<ValueId> HardSigmoid(Terms& t, ValueId v) {
  const std::optional<ValueId> alpha = t.Attribute(v, "alpha"), beta = t.Attribute(v, "beta");
  if (!alpha.has_value() || !beta.has_value()) return std::nullopt;
  return Limit(t, {0, 1, t.Add(t.Mul(t.in(v, 0), *alpha), *beta)});
}

std::optional<ValueId> HardSwish(Terms& t, ValueId v) {
  const ValueId x = t.in(v, 0);
  return t.Mul(x, Limit(t, {0, 1, t.Add(t.Div(x, 6), 0.5)}));
}

ValueId LeakyOf(Terms& t, ValueId x, ValueId slope) {
  const ValueId relu = t.Unary("Relu", x);
  return t.Add(relu, t.Mul(t.Sub(x, relu), slope));
}

std::optional<ValueId> LeakyRelu(Terms& t, ValueId v) {
  const std::optional<ValueId> alpha = t.Attribute(v, "alpha");
  return alpha.has_value() ? std::optional(LeakyOf(t, t.in(v, 0), *alpha)) : std::nullopt;
}

std::optional<ValueId> PRelu(Terms& t, ValueId v) {
  const ValueId x = t.in(v, 0), slope = t.in(v, 1);
  if (t.IsDefined(slope)) return LeakyOf(t, x, slope);
  const ValueId zero = t.Literal(t.dtype(v), 0);
  return t.Op("Where", {t.Op("Less", {x, zero}), t.Mul(x, slope), x});
}

/// The literal factors of a multiple of x, outermost first.
struct Multiple {
  std::vector<Scaled> factors;
  double slope = 1;  ///< their product, rounded in double after each factor
};

/// The slope is on the side of 1 on which it seems to be: few roundings of a normal number do not
/// carry it across.
bool IsSureOfSlope(double slope) {
  constexpr double kLeast = 0x1p-900, kLeastDistance = 1e-9;
  const double size = std::abs(slope);
  return size > kLeast && size < 1 / kLeast && std::abs(slope - 1) > kLeastDistance;
}

/// Nothing unless `value` is x times literals, whose product is surely more or less than 1.
std::optional<Multiple> AsMultiple(const Terms& t, ValueId x, ValueId value) {
  Multiple multiple;
  while (value != x) {
    const std::optional<Scaled> scale = AsScaled(t, value);
    if (!scale.has_value()) return std::nullopt;
    multiple.factors.push_back(*scale);
    if (scale->kind == Scaled::Kind::kNegated) multiple.slope = -multiple.slope;
    if (scale->kind == Scaled::Kind::kTimes) multiple.slope *= scale->factor;
    if (scale->kind == Scaled::Kind::kOver) multiple.slope /= scale->factor;
    const bool is_product = multiple.factors.size() > 1;
    if (multiple.slope == 1 || (is_product && !IsSureOfSlope(multiple.slope))) return std::nullopt;
    value = scale->x;
  }
  return multiple;
}

ValueId Times(Terms& t, ValueId x, const Multiple& multiple) {
  for (size_t k = multiple.factors.size(); k-- > 0;) x = Scale(t, x, multiple.factors[k]);
  return x;
}

std::optional<ValueId> ExtremeAsLeakyRelu(Terms& t, ValueId v) {
  for (size_t k = 0; k < 2; ++k) {
    const ValueId x = t.in(v, k);
    const std::optional<Multiple> multiple = AsMultiple(t, x, t.in(v, 1 - k));
    if (!multiple.has_value()) continue;
    const ValueId relu = t.Unary("Relu", x), rest = t.Sub(x, relu);
    if (t.Is(v, "Max") == (multiple->slope < 1)) return t.Add(relu, Times(t, rest, *multiple));
    return t.Add(Times(t, relu, *multiple), rest);
  }
  return std::nullopt;
}

std::optional<ValueId> Softsign(Terms& t, ValueId v) {
  const ValueId x = t.in(v, 0);
  return t.Div(x, t.Add(t.Unary("Abs", x), 1));
}

std::optional<ValueId> ThresholdedRelu(Terms& t, ValueId v) {
  const ValueId x = t.in(v, 0);
  const std::optional<ValueId> alpha = t.Attribute(v, "alpha");
  if (!alpha.has_value()) return std::nullopt;
  return t.Op("Where", {t.Op("Less", {*alpha, x}), x, t.Literal(t.dtype(v), 0)});
}

constexpr std::array<AxiomRule, 15> kActivationsRules = {{
    {"elu as a sum of extremes", "Add", &EluAsExtremes},
    {"elu as a sum of extremes", "Sub", &EluAsExtremes},
    {"elu, celu and selu by exponentials", "Celu", &Celu},
    {"elu, celu and selu by exponentials", "Elu", &Elu},
    {"elu, celu and selu by exponentials", "Selu", &Selu},
    {"gelu by erf", "Gelu", &GeluByErf},
    {"gelu by tanh", "Gelu", &GeluByTanh},
    {"hard sigmoid and hard swish by clip", "HardSigmoid", &HardSigmoid},
    {"hard sigmoid and hard swish by clip", "HardSwish", &HardSwish},
    {"leaky relu by relu", "LeakyRelu", &LeakyRelu},
    {"leaky relu by relu", "PRelu", &PRelu},
    {"leaky relu as an extreme", "Max", &ExtremeAsLeakyRelu},
    {"leaky relu as an extreme", "Min", &ExtremeAsLeakyRelu},
    {"softsign by absolute value", "Softsign", &Softsign},
    {"thresholded relu by where", "ThresholdedRelu", &ThresholdedRelu},
}};

}  // namespace

AxiomGroup ActivationAxioms() { return {kActivationsAxioms, kActivationsRules}; }

}  // namespace mendel
