// Positions of extremes: an increasing function does not move them.

#include <array>
#include <optional>
#include <string>

#include "verifier/axioms/rules.h"
#include "verifier/axioms/scaled.h"

namespace mendel {
namespace {

constexpr std::array<AxiomDescription, 1> kOrdersAxioms = {{
    {"position of an extreme",
     "argmax(f(x)) = argmax(x), f(x) = x + c, x c, x x, exp(x), sqrt(x), x / (x + 1); argmax(-x) = "
     "argmin(x)",
     "f increases strictly: c is fixed along the axis, a factor positive, x of a quotient or "
     "square "
     "not negative, all finite."},
}};

/// The value whose order along the axis another one has, or the reverse order.
struct Order {
  ValueId x;
  bool reversed = false;
};

/// `c` broadcasts into `x` without varying along `axis`, and is finite for every input.
bool IsFixedAlong(const Terms& t, ValueId c, ValueId x, int64_t axis) {
  if (!t.IsDefined(c)) return false;
  const int64_t d = axis - static_cast<int64_t>(t.shape(x).size() - t.shape(c).size());
  return d < 0 || t.shape(c)[static_cast<size_t>(d)] == 1;
}

/// e of e / (e + 1) or (e - 1) / (e + 1), e > 0.
std::optional<ValueId> InRatio(const Terms& t, ValueId product) {
  for (const size_t k : {0, 1}) {
    const ValueId top = t.in(product, k), inverse = t.in(product, 1 - k);
    if (!t.Is(inverse, "Reciprocal") || !t.Is(t.in(inverse, 0), "Add")) continue;
    const ValueId below = t.in(inverse, 0), e = t.in(below, 0);
    if (t.Scalar(t.in(below, 1)) != 1.0 || !t.IsPositive(e)) continue;
    const bool shifted = t.Is(top, "Add") && t.in(top, 0) == e && t.Scalar(t.in(top, 1)) == -1.0;
    if (top == e || shifted) return e;
  }
  return std::nullopt;
}

std::optional<Order> OrderOf(const Terms& t, ValueId v, int64_t axis) {
  if (t.Is(v, "Exp")) return Order{t.in(v, 0)};
  if (t.Is(v, "Sqrt") && t.IsNonNegative(t.in(v, 0))) return Order{t.in(v, 0)};
  if (const std::optional<Scaled> scale = AsScaled(t, v))
    return Order{scale->x, scale->kind == Scaled::Kind::kNegated};
  const bool sum = t.Is(v, "Add"), product = t.Is(v, "Mul");
  if (product && t.in(v, 0) == t.in(v, 1) && t.IsNonNegative(t.in(v, 0))) return Order{t.in(v, 0)};
  if (product) {
    if (const std::optional<ValueId> e = InRatio(t, v)) return Order{*e};
  }
  if (!sum && !product && !t.Is(v, "Sub") && !t.Is(v, "Div")) return std::nullopt;
  for (const size_t k : {0, 1}) {
    const ValueId x = t.in(v, k), c = t.in(v, 1 - k);
    if (t.shape(x) != t.shape(v) || !IsFixedAlong(t, c, x, axis)) continue;
    if ((product || t.Is(v, "Div")) && !t.IsPositive(c)) continue;
    if (k == 1 && t.Is(v, "Div")) continue;
    return Order{x, k == 1 && t.Is(v, "Sub")};
  }
  return std::nullopt;
}

std::optional<ValueId> Position(Terms& t, ValueId v) {
  const ValueId x = t.in(v, 0);
  if (!IsFloat(t.dtype(x)) || !t.IsDefined(x)) return std::nullopt;
  const Attributes attrs = t.node(v).attrs;
  const std::optional<Order> order = OrderOf(t, x, attrs.Int("axis"));
  if (!order.has_value()) return std::nullopt;
  const bool max = t.Is(v, "ArgMax") != order->reversed;
  return t.Op(max ? "ArgMax" : "ArgMin", {order->x}, attrs);
}

constexpr std::array<AxiomRule, 2> kOrdersRules = {{
    {"position of an extreme", "ArgMax", &Position, Elements::kAny},
    {"position of an extreme", "ArgMin", &Position, Elements::kAny},
}};

}  // namespace

AxiomGroup OrderAxioms() { return {kOrdersAxioms, kOrdersRules}; }

}  // namespace mendel
