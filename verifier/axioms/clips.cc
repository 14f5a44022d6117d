#include "verifier/axioms/clips.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "verifier/axioms/exact.h"
#include "verifier/axioms/rules.h"
#include "verifier/axioms/scaled.h"

namespace mendel {
namespace {

constexpr std::array<AxiomDescription, 6> kClipsAxioms = {{
    {"clip as min and max",
     "Clip(x, a, b) = min(max(x, a), b), Relu(x) = max(x, 0), min(x, 0) = x - Relu(x)",
     "The definitions; max(x, 0) + min(x, 0) = x."},
    {"clip of a clip",
     "Clip(Clip(x, a, b), c, d) = Clip(x, a', b'), a' and b' being a and b limited to [c, d]",
     "The composition is monotone, is the identity between a' and b' and constant outside; relu is "
     "idempotent in particular."},
    {"clip of a multiple",
     "Clip(c x, a, b) = c Clip(x, a / c, b / c), c > 0; Clip(-x, a, b) = -Clip(x, -b, -a)",
     "Multiplication by c > 0 is increasing, by -1 decreasing; the quotients must be exact."},
    {"clip of a shifted value", "Clip(x + c, a, b) = Clip(x, a - c, b - c) + c",
     "Adding c is increasing; the differences must be exact."},
    {"relu of a product", "Relu(x y) = y Relu(x) for y >= 0, Relu(x / y) = Relu(x) / y for y > 0",
     "Both sides are x y where x >= 0 and 0 elsewhere; y is a known sum of squares, exponential, "
     "positive literal, ..."},
    {"relu of no negative value", "Relu(x) = x, Clip(x, a, b) = min(x, b), for x >= 0 >= a",
     "max(x, a) = x."},
}};

/// [a, b] seen through the interval of another clip.
double Within(const Interval& interval, double value) {
  return std::min(std::max(value, interval.low), interval.high);
}

std::optional<ValueId> Normalize(Terms& t, ValueId v) {
  const std::optional<Interval> interval = AsInterval(t, v);
  if (!interval.has_value()) return std::nullopt;
  const bool below = interval->OnlyLow(), above = interval->OnlyHigh();
  const bool simpler =
      (below && above) || (below && interval->low == 0) || (above && interval->high == 0);
  const bool negative_zero = (interval->low == 0 && std::signbit(interval->low)) ||
                             (interval->high == 0 && std::signbit(interval->high));
  return simpler || negative_zero ? std::optional(Limit(t, *interval)) : std::nullopt;
}

std::optional<ValueId> LimitOfLiteral(Terms& t, ValueId v) {
  const std::optional<double> bound = t.Scalar(t.in(v, 1));
  if (!bound.has_value()) return std::nullopt;
  const bool max = t.Is(v, "Max");
  return Limit(
      t, {max ? *bound : -Interval::kInfinity, max ? Interval::kInfinity : *bound, t.in(v, 0)});
}

std::optional<ValueId> Compose(Terms& t, ValueId v) {
  const std::optional<Interval> outer = AsInterval(t, v);
  const std::optional<Interval> inner = outer.has_value() ? AsInterval(t, outer->x) : std::nullopt;
  if (!inner.has_value()) return std::nullopt;
  return Limit(t, {Within(*outer, inner->low), Within(*outer, inner->high), inner->x});
}

std::optional<ValueId> Signed(Terms& t, ValueId v) {
  const std::optional<Interval> interval = AsInterval(t, v);
  if (!interval.has_value() || !t.IsNonNegative(interval->x) || interval->low > 0 ||
      interval->OnlyHigh())
    return std::nullopt;
  return Limit(t, {-Interval::kInfinity, interval->high, interval->x});
}

std::optional<ValueId> Multiple(Terms& t, ValueId v) {
  const std::optional<Interval> interval = AsInterval(t, v);
  const std::optional<Scaled> scale =
      interval.has_value() ? AsScaled(t, interval->x) : std::nullopt;
  if (!scale.has_value()) return std::nullopt;
  if (scale->kind == Scaled::Kind::kNegated) {
    return t.Unary("Neg", Limit(t, {-interval->high, -interval->low, scale->x}));
  }
  const auto inner = [&](double bound) {
    return scale->kind == Scaled::Kind::kTimes ? exact::Quotient(DType::kF64, bound, scale->factor)
                                               : exact::Product(DType::kF64, bound, scale->factor);
  };
  const std::optional<double> low = inner(interval->low), high = inner(interval->high);
  if (!low.has_value() || !high.has_value()) return std::nullopt;
  return Scale(t, Limit(t, {*low, *high, scale->x}), *scale);
}

std::optional<ValueId> Shifted(Terms& t, ValueId v) {
  const std::optional<Interval> interval = AsInterval(t, v);
  if (!interval.has_value() || !t.Is(interval->x, "Add")) return std::nullopt;
  const std::optional<double> shift = t.Scalar(t.in(interval->x, 1));
  if (!shift.has_value()) return std::nullopt;
  const auto low = exact::Sum(DType::kF64, interval->low, -*shift),
             high = exact::Sum(DType::kF64, interval->high, -*shift);
  if (!low.has_value() || !high.has_value()) return std::nullopt;
  return t.Add(Limit(t, {*low, *high, t.in(interval->x, 0)}), *shift);
}

std::optional<ValueId> ReluOfProduct(Terms& t, ValueId v) {
  const ValueId product = t.in(v, 0);
  if (t.Is(product, "Mul")) {
    for (const size_t k : {1, 0}) {
      if (!t.IsNonNegative(t.in(product, k))) continue;
      return t.Mul(t.Unary("Relu", t.in(product, 1 - k)), t.in(product, k));
    }
  }
  if (t.Is(product, "Div") && t.IsPositive(t.in(product, 1))) {
    return t.Div(t.Unary("Relu", t.in(product, 0)), t.in(product, 1));
  }
  return std::nullopt;
}

constexpr std::array<AxiomRule, 12> kClipsRules = {{
    {"clip as min and max", "Max", &LimitOfLiteral},
    {"clip as min and max", "Min", &LimitOfLiteral},
    {"clip of a clip", "Clip", &Compose},
    {"clip of a clip", "Relu", &Compose},
    {"relu of no negative value", "Clip", &Signed},
    {"relu of no negative value", "Relu", &Signed},
    {"clip of a multiple", "Clip", &Multiple},
    {"clip of a multiple", "Relu", &Multiple},
    {"clip of a shifted value", "Clip", &Shifted},
    {"clip of a shifted value", "Relu", &Shifted},
    {"relu of a product", "Relu", &ReluOfProduct},
    {"clip as min and max", "Clip", &Normalize},
}};

}  // namespace

std::optional<Interval> AsInterval(const Terms& t, ValueId value) {
  if (!IsFloat(t.dtype(value))) return std::nullopt;
  if (t.Is(value, "Relu")) return Interval{0, Interval::kInfinity, t.in(value, 0)};
  if (t.Is(value, "Clip")) {
    const Attributes& attrs = t.node(value).attrs;
    const Interval interval{attrs.Float("min"), attrs.Float("max"), t.in(value, 0)};
    const bool valid = interval.low <= interval.high && interval.low < Interval::kInfinity &&
                       interval.high > -Interval::kInfinity;
    return valid ? std::optional(interval) : std::nullopt;
  }
  if (t.Is(value, "Sub") && t.Is(t.in(value, 1), "Relu") &&
      t.in(t.in(value, 1), 0) == t.in(value, 0)) {
    return Interval{-Interval::kInfinity, 0, t.in(value, 0)};
  }
  return std::nullopt;
}

ValueId Limit(Terms& t, const Interval& interval) {
  const ValueId x = interval.x;
  if (interval.OnlyLow() && interval.OnlyHigh()) return x;
  if (interval.OnlyLow() && interval.low == 0) return t.Unary("Relu", x);
  if (interval.OnlyHigh() && interval.high == 0) return t.Sub(x, t.Unary("Relu", x));
  const double low = interval.low == 0 ? 0 : interval.low,
               high = interval.high == 0 ? 0 : interval.high;  // no -0
  return t.Op("Clip", {x}, {{"min", low}, {"max", high}});
}

AxiomGroup ClipAxioms() { return {kClipsAxioms, kClipsRules}; }

}  // namespace mendel
