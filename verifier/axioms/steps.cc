// Round, Floor and Ceil do not decrease and keep integers: limits move through them, and what is
// quantized twice is quantized once.

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "verifier/axioms/clips.h"
#include "verifier/axioms/limits.h"
#include "verifier/axioms/rules.h"
#include "verifier/axioms/scaled.h"

namespace mendel {
namespace {

constexpr std::array<AxiomDescription, 3> kStepsAxioms = {{
    {"limit of a limited value", "Clip(x, a, b) = x, a <= x <= b",
     "x is an integer of few bits, or a sum of such a one that does not wrap."},
    {"quantized integer", "Round(Round(x)) = Round(x), Round(q) = q, Cast(Cast(q) + a - a) = q",
     "A float of an integer is whole; q has few bits, all casts keep it, and no sum wraps."},
    {"rounding of a limited value",
     "Round(c Clip(x, a, b)) = Clip(Round(c x), Round(c a), Round(c b)), c > 0, likewise Floor and "
     "Ceil",
     "A function that does not decrease commutes with the larger and the smaller of two numbers."},
}};

double Stepped(std::string_view op, double value) {
  if (op == "Floor") return std::floor(value);
  return op == "Ceil" ? std::ceil(value) : std::nearbyint(value);
}

/// The step of `bound` times the product of literals that `of_bound` is after rounding, unless it
/// is so near to a jump that the rounding matters. Null: there is no factor.
std::optional<double> SteppedBound(std::string_view op, double bound,
                                   const std::optional<double>& of_bound) {
  if (bound == 0 || std::isinf(bound)) return bound;
  if (!of_bound.has_value()) return Stepped(op, bound);
  const double factor = *of_bound;
  const double value = bound * factor;
  constexpr double kMargin = 1e-9;
  constexpr double kLargest = 1 << 30;
  if (!(std::abs(value) < kLargest)) return std::nullopt;
  const double step = Stepped(op, value), margin = kMargin * std::max(1.0, std::abs(value));
  if (Stepped(op, value - margin) != step || Stepped(op, value + margin) != step)
    return std::nullopt;
  return step;
}

std::optional<ValueId> StepOfLimited(Terms& t, ValueId v) {
  const std::string op(t.node(v).op->name);
  ValueId base = t.in(v, 0);
  std::vector<Scaled> scales;  // outermost first
  std::optional<double> factor;
  std::optional<Scaled> scale = AsScaled(t, base);
  for (; scale.has_value() && scale->kind != Scaled::Kind::kNegated; scale = AsScaled(t, base)) {
    scales.push_back(*scale);
    const double so_far = factor.value_or(1);
    factor = scale->kind == Scaled::Kind::kTimes ? so_far * scale->factor : so_far / scale->factor;
    // Beyond, a product of doubles may have lost digits.
    if (!(*factor > 0x1p-900 && *factor < 0x1p900)) return std::nullopt;
    base = scale->x;
  }
  const std::optional<Interval> limited = AsInterval(t, base);
  if (!limited.has_value()) return std::nullopt;
  const std::optional<double> low = SteppedBound(op, limited->low, factor),
                              high = SteppedBound(op, limited->high, factor);
  if (!low.has_value() || !high.has_value()) return std::nullopt;
  ValueId x = limited->x;
  for (size_t k = scales.size(); k-- > 0;) x = Scale(t, x, scales[k]);
  return Limit(t, {*low, *high, t.Unary(op, x)});
}

/// A float that is an integer: one cast or rounded, plus a whole number.
bool IsWhole(const Terms& t, ValueId v, int depth = 8) {
  if (t.Is(v, "Round") || t.Is(v, "Floor") || t.Is(v, "Ceil")) return true;
  if (t.Is(v, "Cast") && IsFloat(t.dtype(v))) {
    const DType from = t.dtype(t.in(v, 0));
    return IsIntegral(from) && from != DType::kBool;
  }
  const std::optional<double> shift = t.Is(v, "Add") ? t.Scalar(t.in(v, 1)) : std::nullopt;
  return depth > 0 && shift.has_value() && *shift == std::floor(*shift) &&
         IsWhole(t, t.in(v, 0), depth - 1);
}

std::optional<ValueId> StepOfWhole(Terms& t, ValueId v) {
  const ValueId x = t.in(v, 0);
  return IsWhole(t, x) ? std::optional(x) : std::nullopt;
}

std::optional<ValueId> LimitOfLimited(Terms& t, ValueId v) {
  const std::optional<Interval> interval = AsInterval(t, v);
  if (!interval.has_value() || !IsWhole(t, interval->x)) return std::nullopt;
  const Limits limits = LimitsOf(t, interval->x);
  const bool inside = std::isfinite(limits.low) && std::isfinite(limits.high) &&
                      limits.Within({interval->low, interval->high});
  return inside ? std::optional(interval->x) : std::nullopt;
}

/// The integer of few bits that casts and sums of whole numbers keep, and what they add to it.
struct Shifted {
  ValueId x;
  double shift = 0;
};
std::optional<Shifted> ShiftedInteger(const Terms& t, ValueId v) {
  Shifted result{v, 0};
  const auto is_base = [&] { return IsCode(t.dtype(result.x)) && HoldsItsDType(t, result.x); };
  for (int depth = 0; depth < 8 && !is_base(); ++depth) {
    const Limits limits = LimitsOf(t, result.x);
    if (!std::isfinite(limits.low) || !std::isfinite(limits.high)) return std::nullopt;
    const bool sum = t.Is(result.x, "Add");
    if (!sum && !t.Is(result.x, "Cast")) return std::nullopt;
    if (sum) {
      const double shift = *t.Number(t.in(result.x, 1));  // LimitsOf found it
      if (shift != std::floor(shift)) return std::nullopt;
      result.shift += shift;
    }
    result.x = t.in(result.x, 0);
  }
  return is_base() ? std::optional(result) : std::nullopt;
}

std::optional<ValueId> CastOfShifted(Terms& t, ValueId v) {
  if (!IsCode(t.dtype(v))) return std::nullopt;
  const std::optional<Shifted> shifted = ShiftedInteger(t, t.in(v, 0));
  if (!shifted.has_value() || shifted->shift != 0 || t.type(shifted->x) != t.type(v))
    return std::nullopt;
  return shifted->x;
}

constexpr std::array<AxiomRule, 9> kStepsRules = {{
    {"quantized integer", "Cast", &CastOfShifted, Elements::kAny},
    {"quantized integer", "Ceil", &StepOfWhole},
    {"quantized integer", "Floor", &StepOfWhole},
    {"quantized integer", "Round", &StepOfWhole},
    {"limit of a limited value", "Clip", &LimitOfLimited},
    {"limit of a limited value", "Relu", &LimitOfLimited},
    {"rounding of a limited value", "Ceil", &StepOfLimited},
    {"rounding of a limited value", "Floor", &StepOfLimited},
    {"rounding of a limited value", "Round", &StepOfLimited},
}};

}  // namespace

AxiomGroup StepAxioms() { return {kStepsAxioms, kStepsRules}; }

}  // namespace mendel
