// Round, Floor and Ceil do not decrease: limits and largest elements move through them.

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string>

#include "verifier/axioms/clips.h"
#include "verifier/axioms/rules.h"
#include "verifier/axioms/scaled.h"

namespace mendel {
namespace {

constexpr std::array<AxiomDescription, 1> kStepsAxioms = {{
    {"rounding of a limited value",
     "Round(c Clip(x, a, b)) = Clip(Round(c x), Round(c a), Round(c b)), c > 0, likewise Floor and "
     "Ceil",
     "A function that does not decrease commutes with the larger and the smaller of two numbers."},
}};

double Stepped(std::string_view op, double value) {
  if (op == "Floor") return std::floor(value);
  return op == "Ceil" ? std::ceil(value) : std::nearbyint(value);
}

/// The step of `bound` times `factor`, unless the product is so near to a jump that its rounding
/// error matters.
std::optional<double> SteppedBound(std::string_view op, double bound, double factor) {
  if (bound == 0 || std::isinf(bound)) return bound;
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
  double factor = 1;
  std::optional<Scaled> scale = AsScaled(t, base);
  for (; scale.has_value() && scale->kind != Scaled::Kind::kNegated; scale = AsScaled(t, base)) {
    scales.push_back(*scale);
    factor = scale->kind == Scaled::Kind::kTimes ? factor * scale->factor : factor / scale->factor;
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

constexpr std::array<AxiomRule, 3> kStepsRules = {{
    {"rounding of a limited value", "Ceil", &StepOfLimited},
    {"rounding of a limited value", "Floor", &StepOfLimited},
    {"rounding of a limited value", "Round", &StepOfLimited},
}};

}  // namespace

AxiomGroup StepAxioms() { return {kStepsAxioms, kStepsRules}; }

}  // namespace mendel
