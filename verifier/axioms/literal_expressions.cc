// Expressions of literals alone, as exporters leave them in a graph: Sqrt(80), Div(1, 3).

#include <array>
#include <cmath>
#include <optional>
#include <string_view>

#include "base/status.h"
#include "verifier/axioms/exact.h"
#include "verifier/axioms/rules.h"

namespace mendel {
namespace {

constexpr std::array<AxiomDescription, 3> kExpressionAxioms = {{
    {"factors of a literal expression", "x (a b) = (x a) b, x / (a b) = (x / a) / b, and their kin",
     "Associativity of products of finite literals."},
    {"literal of an expression", "x + a b is x plus the literal of a b; likewise roots and powers",
     "The literal is the dtype's number nearest to the value of the expression; the use is "
     "reported."},
    {"root of a literal", "Sqrt(n) is the number whose square n is",
     "The root is exact, or the correctly rounded literal for it."},
}};

/// Operators of an expression that are followed.
constexpr int kDepth = 6;
/// A sum may lose so much of its larger operand: more would be a difference of roundings.
constexpr double kLeastOfSum = 0.5;

/// The constant that a literal stands for where it is the dtype's nearest number to it.
double Meant(const Terms& t, ValueId v, double literal) {
  constexpr double kPi = 3.14159265358979323846;
  return t.MayRound() && literal == RoundTo(t.dtype(v), kPi) ? kPi : literal;
}

std::optional<double> OfTwo(std::string_view op, double x, double y) {
  if (op == "Mul") return x * y;
  if (op == "Div") return x / y;
  if (op == "Pow" && x > 0) return std::pow(x, y);
  if (op != "Add" && op != "Sub") return std::nullopt;
  const double sum = op == "Add" ? x + y : x - y;
  if (std::abs(sum) < kLeastOfSum * std::max(std::abs(x), std::abs(y))) return std::nullopt;
  return sum;
}

std::optional<double> OfOne(std::string_view op, double x) {
  if (op == "Neg") return -x;
  if (op == "Reciprocal") return 1 / x;
  if (op == "Sqrt" && x >= 0) return std::sqrt(x);
  if (op == "Exp") return std::exp(x);
  return std::nullopt;
}

/// The number that an expression of literals is, in double precision; nothing where it is not
/// finite.
std::optional<double> NumberOf(const Terms& t, ValueId v, int depth = kDepth) {
  if (const std::optional<double> number = t.Scalar(v)) return Meant(t, v, *number);
  const size_t operands = t.node(v).inputs.size();
  if (depth == 0 || !t.shape(v).empty() || !IsFloat(t.dtype(v)) || operands < 1 || operands > 2)
    return std::nullopt;
  const std::optional<double> x = NumberOf(t, t.in(v, 0), depth - 1);
  const std::optional<double> y = operands == 2 ? NumberOf(t, t.in(v, 1), depth - 1) : x;
  if (!x.has_value() || !y.has_value()) return std::nullopt;
  const std::string_view op = t.node(v).op->name;
  const std::optional<double> number = operands == 2 ? OfTwo(op, *x, *y) : OfOne(op, *x);
  return number.has_value() && std::isfinite(*number) ? number : std::nullopt;
}

std::optional<ValueId> RootOfLiteral(Terms& t, ValueId v) {
  const ValueId x = t.in(v, 0);
  if (const std::optional<double> number = t.Scalar(x)) {
    if (*number < 0) return std::nullopt;
    const double root = std::sqrt(*number);
    const bool exact = std::fma(root, root, -*number) == 0 && (*number == 0 || *number > 0x1p-900);
    if (exact && RoundTo(t.dtype(v), root) == root) return t.Literal(t.dtype(v), root);
    const bool whole = *number == std::floor(*number) && *number <= exact::kLargestRadicand;
    if (!whole || !t.MayRoundIn(v) || exact::IsSquare(static_cast<int>(*number)))
      return std::nullopt;
    t.Use(Cat("literal sqrt(", *number, ")"));
    return t.Literal(t.dtype(v), RoundTo(t.dtype(v), root));
  }
  const std::optional<double> number = NumberOf(t, x);
  if (!number.has_value() || *number < 0 || !t.MayRoundIn(v)) return std::nullopt;
  t.Use(Cat("literal sqrt(", *number, ")"));
  return t.Literal(t.dtype(v), RoundTo(t.dtype(v), std::sqrt(*number)));
}

/// An expression of literals that is none itself.
bool IsExpression(const Terms& t, ValueId v) {
  return !IsConstantTerm(t, v) && NumberOf(t, v).has_value();
}

/// x times a product or quotient of literals, or divided by it: one literal after the other.
std::optional<ValueId> FactorsOfExpression(Terms& t, ValueId v) {
  const bool over = t.Is(v, "Div");
  for (const size_t k : {1, 0}) {
    const ValueId e = t.in(v, k), x = t.in(v, 1 - k);
    if (over && k == 0) break;
    if (!IsExpression(t, e) || NumberOf(t, x).has_value()) continue;
    const std::string times = over ? "Div" : "Mul", by = over ? "Mul" : "Div";
    if (t.Is(e, "Mul")) return t.Op(times, {t.Op(times, {x, t.in(e, 0)}), t.in(e, 1)});
    if (t.Is(e, "Div")) return t.Op(by, {t.Op(times, {x, t.in(e, 0)}), t.in(e, 1)});
    if (t.Is(e, "Reciprocal")) return t.Op(by, {x, t.in(e, 0)});
  }
  return std::nullopt;
}

std::optional<ValueId> LiteralOfExpression(Terms& t, ValueId v) {
  if (!t.MayRoundIn(v)) return std::nullopt;
  for (size_t k = 0; k < 2; ++k) {
    const ValueId e = t.in(v, k);
    if (!IsExpression(t, e) || NumberOf(t, t.in(v, 1 - k)).has_value()) continue;
    const double number = RoundTo(t.dtype(e), *NumberOf(t, e));
    if (number == 0 || !std::isfinite(number)) continue;
    t.Use(Cat("literal ", number));
    std::vector<ValueId> inputs = t.node(v).inputs;
    inputs[k] = t.Literal(t.dtype(e), number);
    return t.Op(t.node(v).op->name, std::move(inputs), Attributes(t.node(v).attrs));
  }
  return std::nullopt;
}

constexpr std::array<AxiomRule, 7> kExpressionRules = {{
    {"root of a literal", "Sqrt", &RootOfLiteral},
    {"factors of a literal expression", "Mul", &FactorsOfExpression},
    {"factors of a literal expression", "Div", &FactorsOfExpression},
    {"literal of an expression", "Add", &LiteralOfExpression},
    {"literal of an expression", "Sub", &LiteralOfExpression},
    {"literal of an expression", "Mul", &LiteralOfExpression},
    {"literal of an expression", "Div", &LiteralOfExpression},
}};

}  // namespace

AxiomGroup LiteralExpressionAxioms() { return {kExpressionAxioms, kExpressionRules}; }

}  // namespace mendel
