// Expressions of literals alone, as exporters leave them in a graph: Sqrt(80), Div(1, 3).

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "graph/evaluate.h"
#include "verifier/axioms/exact.h"
#include "verifier/axioms/rules.h"
#include "verifier/axioms/signs.h"

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
/// A sum is at least this share of its absolute operands' sum: less would be a difference of
/// roundings.
constexpr double kLeastOfSum = 0.5;
/// Larger tensors are weights, which a refit folds.
constexpr int64_t kMostLiterals = 1 << 14;
/// A double below it may have lost digits.
constexpr double kLeastNumber = 0x1p-900;

/// The constant that a literal stands for where it is the dtype's nearest number to it.
double Meant(const Terms& t, ValueId v, double literal) {
  constexpr double kPi = 3.14159265358979323846;
  return t.MayRound() && literal == RoundTo(t.dtype(v), kPi) ? kPi : literal;
}

constexpr std::array<std::string_view, 14> kFollowed = {
    "Add", "Div",        "Exp",     "Expand", "Identity", "Mul",  "Neg",
    "Pow", "Reciprocal", "Reshape", "Sqrt",   "Sub",      "Tile", "Transpose"};

bool Computes(std::string_view op) {
  return op != "Expand" && op != "Identity" && op != "Neg" && op != "Reshape" && op != "Tile" &&
         op != "Transpose";
}

/// The absolute numbers.
HostValue Magnitudes(const HostValue& value) {
  HostValue result = value;
  for (double& number : result.scalars) number = std::abs(number);
  return result;
}

/// The numbers that an expression of literals is, in double precision; nullopt if one is not
/// finite, the difference of larger ones, or so small that it may have lost digits.
std::optional<HostValue> NumbersOf(const Terms& t, ValueId v, int depth = kDepth) {
  if (!IsFloat(t.dtype(v)) || NumElements(t.type(v)) > kMostLiterals) return std::nullopt;
  if (IsConstantTerm(t, v)) {
    if (!IsKnown(t.node(v), t.weights())) return std::nullopt;
    HostValue literals = HostValue::FromTensor(ConstantValue(t.node(v)));
    for (double& literal : literals.scalars) literal = Meant(t, v, literal);
    return literals;
  }
  const Node& node = t.node(v);
  const std::string_view op = node.op->name;
  if (depth == 0 || node.inputs.empty() ||
      std::find(kFollowed.begin(), kFollowed.end(), op) == kFollowed.end())
    return std::nullopt;
  std::vector<HostValue> values;
  std::vector<const HostValue*> operands;
  for (const ValueId input : node.inputs) {
    std::optional<HostValue> value = NumbersOf(t, input, depth - 1);
    if (!value.has_value()) return std::nullopt;
    values.push_back(*std::move(value));
  }
  for (const HostValue& value : values) operands.push_back(&value);
  const std::vector<TensorType> types = t.InputTypes(v);
  const NodeView view{types, node.attrs, node.outputs};
  HostValue result = std::move(EvaluateNode(*node.op, view, operands)[0]);
  const auto has_all_digits = [least = Computes(op) ? kLeastNumber : 0](double number) {
    return std::isfinite(number) && std::abs(number) >= least;
  };
  if (!std::all_of(result.scalars.begin(), result.scalars.end(), has_all_digits))
    return std::nullopt;
  if (op == "Add" || op == "Sub") {
    for (HostValue& value : values) value = Magnitudes(value);
    const OpDefinition& add = *FindOp("Add");
    const HostValue sums = std::move(EvaluateNode(add, view, operands)[0]);
    for (size_t i = 0; i < sums.scalars.size(); ++i) {
      if (std::abs(result.scalars[i]) < kLeastOfSum * sums.scalars[i]) return std::nullopt;
    }
  }
  return result;
}

/// The number of a scalar expression.
std::optional<double> NumberOf(const Terms& t, ValueId v) {
  if (!t.shape(v).empty()) return std::nullopt;
  const std::optional<HostValue> numbers = NumbersOf(t, v);
  return numbers.has_value() ? std::optional(numbers->scalars[0]) : std::nullopt;
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

/// Also for tensors: each element is a literal.
std::optional<ValueId> LiteralOfExpression(Terms& t, ValueId v) {
  if (!t.MayRoundIn(v)) return std::nullopt;
  for (size_t k = 0; k < 2; ++k) {
    const ValueId e = t.in(v, k);
    if (IsConstantTerm(t, e)) continue;
    std::optional<HostValue> numbers = NumbersOf(t, e);
    if (!numbers.has_value() || NumbersOf(t, t.in(v, 1 - k)).has_value()) continue;
    for (double& number : numbers->scalars) number = RoundTo(t.dtype(e), number);
    const auto is_literal = [](double number) { return number != 0 && std::isfinite(number); };
    if (!std::all_of(numbers->scalars.begin(), numbers->scalars.end(), is_literal)) continue;
    numbers->type = t.type(e);
    const Tensor literal = numbers->ToTensor();
    t.Use(t.shape(e).empty() ? Cat("literal ", numbers->scalars[0])
                             : Cat("literal ", TypeString(t.type(e))));
    std::vector<ValueId> inputs = t.node(v).inputs;
    inputs[k] = t.Constant(literal, "");
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
