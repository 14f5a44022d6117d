// Max, Min, Abs and the reductions to a largest or smallest element.

#include <algorithm>
#include <array>
#include <vector>

#include "verifier/axioms/clips.h"
#include "verifier/axioms/rules.h"
#include "verifier/axioms/scaled.h"

namespace mendel {
namespace {

constexpr std::array<AxiomDescription, 6> kExtremesAxioms = {{
    {"absolute value",
     "abs(-x) = abs(x), abs(x y) = abs(x) y for y >= 0, abs(x) = x for x >= 0, max(x, -x) = abs(x)",
     "The definition of abs."},
    {"extreme of limited values",
     "max(max(x, a), y) = max(max(x, y), a), likewise for min and for reductions",
     "Both sides are the largest of the same set; an increasing function commutes with the largest "
     "element."},
    {"extreme of multiples",
     "max(c x, c y) = c max(x, y), c > 0; max(-x, -y) = -min(x, y); likewise for reductions",
     "Multiplication by c > 0 is increasing, by -1 decreasing."},
    {"extreme of shifted values",
     "max(x + c, y + c) = max(x, y) + c, likewise for min and for reductions",
     "Adding c is increasing."},
    {"nested extremes", "max(max(x, y), z) = max(x, max(y, z)), max(x, x) = x",
     "The largest element of a set does not depend on order, grouping or repetition."},
    {"nested reductions to an extreme",
     "the largest of the largest elements over some axes is that over all of them",
     "The largest element of a union is the largest of the largest ones; no set is empty."},
}};

std::string_view Opposite(std::string_view op) {
  if (op == "Max") return "Min";
  if (op == "Min") return "Max";
  return op == "ReduceMax" ? "ReduceMin" : "ReduceMax";
}

void Collect(const Terms& t, std::string_view op, ValueId v, std::vector<ValueId>& leaves) {
  if (!t.Is(v, op)) {
    leaves.push_back(v);
    return;
  }
  Collect(t, op, t.in(v, 0), leaves);
  Collect(t, op, t.in(v, 1), leaves);
}

/// One chain, the operands ordered by hash, literals last, without repetition.
std::optional<ValueId> Nested(Terms& t, ValueId v) {
  const std::string op(t.node(v).op->name);
  std::vector<ValueId> leaves;
  Collect(t, op, v, leaves);
  const auto before = [&](ValueId a, ValueId b) {
    const bool a_last = IsConstant(t.node(a)), b_last = IsConstant(t.node(b));
    if (a_last != b_last) return b_last;
    return t.hash(a) != t.hash(b) ? t.hash(a) < t.hash(b) : a < b;
  };
  std::sort(leaves.begin(), leaves.end(), before);
  leaves.erase(std::unique(leaves.begin(), leaves.end()), leaves.end());
  if (leaves.size() == 1) return t.Fit(leaves[0], t.shape(v));
  if (leaves.size() == 2 && t.in(v, 0) == leaves[0] && t.in(v, 1) == leaves[1]) return std::nullopt;
  ValueId chain = leaves[0];
  for (size_t k = 1; k < leaves.size(); ++k) {
    // The whole chain itself would be rewritten for ever.
    const bool whole = k + 1 == leaves.size() && chain == t.in(v, 0) && leaves[k] == t.in(v, 1);
    if (whole) return std::nullopt;
    chain = t.Op(op, {chain, leaves[k]});
  }
  return t.Fit(chain, t.shape(v));
}

/// The bound that a one-sided clip in the direction of `op` sets.
std::optional<Interval> AsLimited(const Terms& t, bool max, ValueId v) {
  const std::optional<Interval> interval = AsInterval(t, v);
  if (!interval.has_value() || !(max ? interval->OnlyLow() : interval->OnlyHigh()))
    return std::nullopt;
  return interval;
}

std::optional<ValueId> OfLimited(Terms& t, ValueId v) {
  const std::string op(t.node(v).op->name);
  for (size_t k = 0; k < 2; ++k) {
    std::optional<Interval> limited = AsLimited(t, op == "Max", t.in(v, k));
    if (!limited.has_value()) continue;
    limited->x = t.Op(op, {limited->x, t.in(v, 1 - k)});
    return Limit(t, *limited);
  }
  return std::nullopt;
}

std::optional<ValueId> OfMultiples(Terms& t, ValueId v) {
  const std::string op(t.node(v).op->name);
  const std::optional<Scaled> a = AsScaled(t, t.in(v, 0)), b = AsScaled(t, t.in(v, 1));
  if (!a.has_value() || !b.has_value() || !a->SameScale(*b)) return std::nullopt;
  const bool negated = a->kind == Scaled::Kind::kNegated;
  return Scale(t, t.Op(negated ? Opposite(op) : op, {a->x, b->x}), *a);
}

std::optional<ValueId> OfShifted(Terms& t, ValueId v) {
  const ValueId a = t.in(v, 0), b = t.in(v, 1);
  if (!t.Is(a, "Add") || !t.Is(b, "Add") || t.in(a, 1) != t.in(b, 1) ||
      !t.Scalar(t.in(a, 1)).has_value())
    return std::nullopt;
  return t.Add(t.Op(std::string(t.node(v).op->name), {t.in(a, 0), t.in(b, 0)}), t.in(a, 1));
}

std::optional<ValueId> AbsoluteMax(Terms& t, ValueId v) {
  for (size_t k = 0; k < 2; ++k) {
    const ValueId x = t.in(v, k), y = t.in(v, 1 - k);
    const bool negatives =
        (t.Is(y, "Neg") && t.in(y, 0) == x) ||
        (t.Is(x, "Sub") && t.Is(y, "Sub") && t.in(x, 0) == t.in(y, 1) && t.in(x, 1) == t.in(y, 0));
    if (negatives) return t.Unary("Abs", t.hash(x) < t.hash(y) || t.Is(y, "Neg") ? x : y);
  }
  return std::nullopt;
}

std::optional<ValueId> Absolute(Terms& t, ValueId v) {
  const ValueId x = t.in(v, 0);
  if (t.IsNonNegative(x)) return x;
  if (t.Is(x, "Neg")) return t.Unary("Abs", t.in(x, 0));
  if (t.Is(x, "Sub") && t.hash(t.in(x, 1)) < t.hash(t.in(x, 0)))
    return t.Unary("Abs", t.Sub(t.in(x, 1), t.in(x, 0)));
  if (t.Is(x, "Mul")) {
    for (const size_t k : {1, 0}) {
      if (t.IsNonNegative(t.in(x, k))) return t.Mul(t.Unary("Abs", t.in(x, 1 - k)), t.in(x, k));
    }
  }
  if (t.Is(x, "Div") && t.IsPositive(t.in(x, 1)))
    return t.Div(t.Unary("Abs", t.in(x, 0)), t.in(x, 1));
  return std::nullopt;
}

bool ReducesSomething(const Terms& t, ValueId v) { return NumElements(t.shape(t.in(v, 0))) > 0; }

ValueId Again(Terms& t, ValueId v, std::string_view op, ValueId x) {
  return t.Op(op, {x}, Attributes(t.node(v).attrs));
}

std::optional<ValueId> ReductionOfLimited(Terms& t, ValueId v) {
  std::optional<Interval> limited = AsInterval(t, t.in(v, 0));
  if (!limited.has_value() || !ReducesSomething(t, v)) return std::nullopt;
  limited->x = Again(t, v, t.node(v).op->name, limited->x);
  return Limit(t, *limited);
}

std::optional<ValueId> ReductionOfMultiple(Terms& t, ValueId v) {
  const std::optional<Scaled> scale = AsScaled(t, t.in(v, 0));
  if (!scale.has_value() || !ReducesSomething(t, v)) return std::nullopt;
  const std::string_view op = t.node(v).op->name;
  return Scale(t, Again(t, v, scale->kind == Scaled::Kind::kNegated ? Opposite(op) : op, scale->x),
               *scale);
}

std::optional<ValueId> ReductionOfShifted(Terms& t, ValueId v) {
  const ValueId x = t.in(v, 0);
  if (!t.Is(x, "Add") || !t.Scalar(t.in(x, 1)).has_value() || !ReducesSomething(t, v))
    return std::nullopt;
  const ValueId shift = t.in(x, 1);
  return t.Add(Again(t, v, t.node(v).op->name, t.in(x, 0)), shift);
}

/// Both reductions over the axes of the innermost operand.
std::optional<ValueId> NestedReduction(Terms& t, ValueId v) {
  const ValueId inner = t.in(v, 0);
  const std::string op(t.node(v).op->name);
  if (!t.Is(inner, op) || !ReducesSomething(t, inner)) return std::nullopt;
  const Ints inner_axes = t.node(inner).attrs.IntList("axes"),
             outer_axes = t.node(v).attrs.IntList("axes");
  const bool inner_keeps = t.node(inner).attrs.Int("keepdims") != 0;
  const ValueId x = t.in(inner, 0);
  Ints remaining;  // axes of x that are dimensions of `inner`
  for (int64_t axis = 0; axis < static_cast<int64_t>(t.shape(x).size()); ++axis) {
    if (inner_keeps || std::find(inner_axes.begin(), inner_axes.end(), axis) == inner_axes.end())
      remaining.push_back(axis);
  }
  Ints axes = inner_axes;
  for (int64_t axis : outer_axes) axes.push_back(remaining[static_cast<size_t>(axis)]);
  std::sort(axes.begin(), axes.end());
  axes.erase(std::unique(axes.begin(), axes.end()), axes.end());
  const Shape shape = t.shape(v);
  return t.Reshape(t.Reduce(op, x, axes, false), shape);
}

constexpr std::array<AxiomRule, 18> kExtremesRules = {{
    {"absolute value", "Abs", &Absolute},
    {"absolute value", "Max", &AbsoluteMax},
    {"extreme of multiples", "Max", &OfMultiples},
    {"extreme of multiples", "Min", &OfMultiples},
    {"extreme of multiples", "ReduceMax", &ReductionOfMultiple},
    {"extreme of multiples", "ReduceMin", &ReductionOfMultiple},
    {"extreme of shifted values", "Max", &OfShifted},
    {"extreme of shifted values", "Min", &OfShifted},
    {"extreme of shifted values", "ReduceMax", &ReductionOfShifted},
    {"extreme of shifted values", "ReduceMin", &ReductionOfShifted},
    {"extreme of limited values", "Max", &OfLimited},
    {"extreme of limited values", "Min", &OfLimited},
    {"extreme of limited values", "ReduceMax", &ReductionOfLimited},
    {"extreme of limited values", "ReduceMin", &ReductionOfLimited},
    {"nested extremes", "Max", &Nested, Elements::kAny},
    {"nested extremes", "Min", &Nested, Elements::kAny},
    {"nested reductions to an extreme", "ReduceMax", &NestedReduction, Elements::kAny},
    {"nested reductions to an extreme", "ReduceMin", &NestedReduction, Elements::kAny},
}};

}  // namespace

AxiomGroup ExtremeAxioms() { return {kExtremesAxioms, kExtremesRules}; }

}  // namespace mendel
