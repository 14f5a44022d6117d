#include "verifier/axioms/limits.h"

#include <cmath>
#include <optional>
#include <string_view>

#include "verifier/axioms/clips.h"

namespace mendel {
namespace {

/// Floats of 32 bits hold all integers up to here.
constexpr double kLargestExact = 1 << 24;

/// A cast of an integer that keeps it: to a type that contains all its values.
bool KeepsInteger(const Terms& t, ValueId cast, const Limits& of_x) {
  const DType to = t.dtype(cast);
  if (to == DType::kBool) return false;
  if (!IsFloat(to)) return of_x.Within(LimitsOfDType(to));
  return (to == DType::kF32 || to == DType::kF64) && of_x.Within({-kLargestExact, kLargestExact});
}

}  // namespace

Limits LimitsOfDType(DType dtype) {
  return {static_cast<double>(LowestInteger(dtype)), static_cast<double>(HighestInteger(dtype))};
}

bool HoldsItsDType(const Terms& t, ValueId v) {
  if (t.dtype(v) == DType::kBool) return true;
  for (int steps = 0; steps < 64; ++steps) {
    if (IsInput(t.node(v)) || IsConstant(t.node(v)) || t.Is(v, "Cast")) return true;
    const std::string_view op = t.node(v).op->name;
    const bool moves = op == "Reshape" || op == "Transpose" || op == "Slice" || op == "Expand" ||
                       op == "Tile" || op == "Split" || op == "Relu" || op == "ReduceMax" ||
                       op == "ReduceMin";
    // The negative of the least integer is none of its dtype.
    const bool reflects = (op == "Neg" || op == "Abs") && IsFloat(t.dtype(v));
    if (!moves && !reflects) return false;
    v = t.in(v, 0);
  }
  return false;
}

Limits LimitsOf(const Terms& t, ValueId v, int depth) {
  if (IsCode(t.dtype(v)) && HoldsItsDType(t, v)) return LimitsOfDType(t.dtype(v));
  if (const std::optional<Interval> interval = AsInterval(t, v))
    return {interval->low, interval->high};
  if (depth == 0) return {};
  if (t.Is(v, "Add")) {
    const std::optional<double> shift =
        t.shape(t.in(v, 1)).empty() ? t.Number(t.in(v, 1)) : std::nullopt;
    // Few small whole numbers add up exactly.
    const bool exact =
        shift.has_value() && *shift == std::floor(*shift) && std::abs(*shift) <= kLargestExact;
    if (!exact) return {};
    const Limits of_x = LimitsOf(t, t.in(v, 0), depth - 1);
    const Limits sum{of_x.low + *shift, of_x.high + *shift};
    return IsFloat(t.dtype(v)) || sum.Within(LimitsOfDType(t.dtype(v))) ? sum : Limits{};
  }
  if (!t.Is(v, "Cast") || !IsIntegral(t.dtype(t.in(v, 0))) || t.dtype(t.in(v, 0)) == DType::kBool)
    return {};
  const Limits of_x = LimitsOf(t, t.in(v, 0), depth - 1);
  return KeepsInteger(t, v, of_x) ? of_x : Limits{};
}

}  // namespace mendel
