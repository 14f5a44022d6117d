// Exp, Log and what is made of them: sigmoid, tanh, softplus, softmax. The canonical program holds
// Exp of single terms, so that field arithmetic decides the rest: softmax(x - c) = softmax(x) is
// then a cancelled factor.

#include <array>
#include <cmath>
#include <vector>

#include "verifier/axioms/clips.h"
#include "verifier/axioms/rules.h"
#include "verifier/axioms/scaled.h"

namespace mendel {
namespace {

constexpr std::array<AxiomDescription, 12> kExponentialsAxioms = {{
    {"exponential of a limited value",
     "exp(max(x, 0)) = max(exp(x), 1), exp(min(x, 0)) = min(exp(x), 1)",
     "exp is increasing, and exp(0) = 1."},
    {"exponential of a sum",
     "exp(x + y) = exp(x) exp(y), exp(x - y) = exp(x) / exp(y), exp(-x) = 1 / exp(x), exp(0) = 1",
     "The functional equation of exp; exp is never 0."},
    {"exponential of a whole multiple", "exp(k x) = exp(x)^k, k = 2, ..., 8",
     "The functional equation of exp."},
    {"factor constant along the reduced axes",
     "sum(x c) = sum(x) c, mean(x c) = mean(x) c, (x c) y = (x y) c of matrices, likewise for x / "
     "c",
     "Distributivity, where c has extent 1 along the axes that are summed."},
    {"logarithm of a product",
     "log(x y) = log(x) + log(y), log(x / y) = log(x) - log(y), log(sqrt(x)) = log(x) / 2, log(1) "
     "= 0",
     "The functional equation of log; y (or a factor) is known to be positive, so that both sides "
     "demand x > 0."},
    {"logarithm of an exponential", "log(exp(x)) = x; exp(log(x)) = x for known x > 0",
     "They are inverse functions."},
    {"logarithm of an exponential and one",
     "log(1 / exp(x) + 1) = log(exp(x) + 1) - x, log(1 / exp(abs(x)) + 1) = log(exp(x) + 1) - "
     "max(x, 0)",
     "1 / e + 1 = (e + 1) / e; abs(x) is x or -x, and for -x max(x, 0) is 0."},
    {"masked softmax",
     "softmax(x + m) = exp(x + m') k / sum(exp(x + m') k), m of -inf where k is 0, m' of 0 there",
     "exp(x - inf) = 0 for every finite x; every row keeps a score."},
    {"odd and even functions",
     "f(-x) = -f(x) for erf, sinh, asinh, atan, sin, tan, sign, asin, atanh; f(-x) = f(x) for cos, "
     "cosh",
     "Symmetry of the functions."},
    {"sigmoid and tanh by exponentials",
     "sigmoid(x) = e / (e + 1), e = exp(x); tanh(x) = (e - 1) / (e + 1), e = exp(2 x)",
     "Definitions, numerator and denominator multiplied by exp(x); e + 1 > 0."},
    {"softmax by exponentials",
     "softmax(x) = exp(x) / sum(exp(x)), log-softmax(x) = x - log(sum(exp(x))), log-sum-exp "
     "likewise",
     "Definitions."},
    {"softplus and mish by exponentials",
     "softplus(x) = log(exp(x) + 1), mish(x) = x tanh(softplus(x))", "Definitions."},
}};

constexpr double kLargestPower = 8;

std::optional<ValueId> ExpOfSum(Terms& t, ValueId v) {
  const ValueId x = t.in(v, 0);
  if (t.Scalar(x) == 0.0) return t.Literal(t.dtype(v), 1);
  if (t.Is(x, "Neg")) return t.Unary("Reciprocal", t.Unary("Exp", t.in(x, 0)));
  const bool sum = t.Is(x, "Add");
  if (!sum && !t.Is(x, "Sub")) return std::nullopt;
  return t.Op(sum ? "Mul" : "Div", {t.Unary("Exp", t.in(x, 0)), t.Unary("Exp", t.in(x, 1))});
}

std::optional<ValueId> ExpOfLimited(Terms& t, ValueId v) {
  const std::optional<Interval> limited = AsInterval(t, t.in(v, 0));
  if (!limited.has_value()) return std::nullopt;
  const ValueId e = t.Unary("Exp", limited->x);
  if (limited->OnlyLow() && limited->low == 0) return Limit(t, {1, Interval::kInfinity, e});
  if (limited->OnlyHigh() && limited->high == 0) return Limit(t, {-Interval::kInfinity, 1, e});
  return std::nullopt;
}

std::optional<ValueId> ExpOfMultiple(Terms& t, ValueId v) {
  const std::optional<Scaled> scale = AsScaled(t, t.in(v, 0));
  if (!scale.has_value() || scale->kind != Scaled::Kind::kTimes) return std::nullopt;
  const double k = scale->factor;
  if (k != std::floor(k) || k < 2 || k > kLargestPower) return std::nullopt;
  return t.Power(t.Unary("Exp", scale->x), static_cast<int>(k));
}

std::optional<ValueId> ExpOfLog(Terms& t, ValueId v) {
  const ValueId x = t.in(v, 0);
  if (!t.Is(x, "Log") || !t.IsPositive(t.in(x, 0))) return std::nullopt;
  return t.in(x, 0);
}

std::optional<ValueId> LogOfExp(Terms& t, ValueId v) {
  const ValueId x = t.in(v, 0);
  return t.Is(x, "Exp") ? std::optional(t.in(x, 0)) : std::nullopt;
}

std::optional<ValueId> LogOfProduct(Terms& t, ValueId v) {
  const ValueId x = t.in(v, 0);
  if (t.Scalar(x) == 1.0) return t.Literal(t.dtype(v), 0);
  if (t.Is(x, "Sqrt")) return t.Mul(t.Unary("Log", t.in(x, 0)), 0.5);
  if (t.Is(x, "Reciprocal")) return t.Unary("Neg", t.Unary("Log", t.in(x, 0)));
  const bool product = t.Is(x, "Mul");
  if (!product && !t.Is(x, "Div")) return std::nullopt;
  if (!t.IsPositive(t.in(x, 1)) && !(product && t.IsPositive(t.in(x, 0)))) return std::nullopt;
  const ValueId a = t.Unary("Log", t.in(x, 0)), b = t.Unary("Log", t.in(x, 1));
  return product ? t.Add(a, b) : t.Sub(a, b);
}

/// log(1 / e + 1), e = exp(x).
std::optional<ValueId> LogOfInverseAndOne(Terms& t, ValueId v) {
  const ValueId sum = t.in(v, 0);
  if (!t.Is(sum, "Add") || t.Scalar(t.in(sum, 1)) != 1.0) return std::nullopt;
  const ValueId inverse = t.in(sum, 0);
  if (!t.Is(inverse, "Reciprocal") || !t.Is(t.in(inverse, 0), "Exp")) return std::nullopt;
  const ValueId e = t.in(inverse, 0), x = t.in(e, 0);
  if (!t.Is(x, "Abs")) return t.Sub(t.Unary("Log", t.Add(e, 1)), x);
  const ValueId y = t.in(x, 0);
  return t.Sub(t.Unary("Softplus", y), t.Unary("Relu", y));
}

std::optional<ValueId> Odd(Terms& t, ValueId v) {
  const ValueId x = t.in(v, 0);
  if (!t.Is(x, "Neg")) return std::nullopt;
  return t.Unary("Neg", t.Op(std::string(t.node(v).op->name), {t.in(x, 0)}));
}

std::optional<ValueId> Even(Terms& t, ValueId v) {
  const ValueId x = t.in(v, 0);
  if (!t.Is(x, "Neg")) return std::nullopt;
  return t.Op(std::string(t.node(v).op->name), {t.in(x, 0)});
}

std::optional<ValueId> Sigmoid(Terms& t, ValueId v) {
  const ValueId e = t.Unary("Exp", t.in(v, 0));
  return t.Div(e, t.Add(e, 1));
}

std::optional<ValueId> Tanh(Terms& t, ValueId v) {
  const ValueId e = t.Unary("Exp", t.Mul(t.in(v, 0), 2));
  return t.Div(t.Add(e, -1), t.Add(e, 1));
}

std::optional<ValueId> Softplus(Terms& t, ValueId v) {
  return t.Unary("Log", t.Add(t.Unary("Exp", t.in(v, 0)), 1));
}

std::optional<ValueId> Mish(Terms& t, ValueId v) {
  const ValueId x = t.in(v, 0);
  return t.Mul(x, t.Unary("Tanh", t.Unary("Softplus", x)));
}

std::optional<ValueId> Softmax(Terms& t, ValueId v) {
  const int64_t axis = t.node(v).attrs.Int("axis");
  const ValueId e = t.Unary("Exp", t.in(v, 0));
  return t.Div(e, t.Reduce("ReduceSum", e, {axis}, true));
}

std::optional<ValueId> LogSoftmax(Terms& t, ValueId v) {
  const int64_t axis = t.node(v).attrs.Int("axis");
  const ValueId x = t.in(v, 0);
  return t.Sub(x, t.Unary("Log", t.Reduce("ReduceSum", t.Unary("Exp", x), {axis}, true)));
}

std::optional<ValueId> LogSum(Terms& t, ValueId v) {
  if (NumElements(t.shape(t.in(v, 0))) == 0) return std::nullopt;
  const Attributes attrs = t.node(v).attrs;
  const ValueId x = t.Is(v, "ReduceLogSumExp") ? t.Unary("Exp", t.in(v, 0)) : t.in(v, 0);
  return t.Unary("Log", t.Op("ReduceSum", {x}, attrs));
}

/// `factor` broadcasts into `shape` without varying along `axes`.
bool IsConstantAlong(const Shape& factor, const Shape& shape, const Ints& axes) {
  for (int64_t axis : axes) {
    const int64_t d = axis - static_cast<int64_t>(shape.size() - factor.size());
    if (d >= 0 && factor[static_cast<size_t>(d)] != 1) return false;
  }
  return true;
}

std::optional<ValueId> ConstantFactor(Terms& t, ValueId v) {
  const ValueId product = t.in(v, 0);
  const bool times = t.Is(product, "Mul");
  if (!times && !t.Is(product, "Div")) return std::nullopt;
  // An empty sum is 0 wherever the factor is undefined.
  if (NumElements(t.shape(product)) == 0) return std::nullopt;
  const Ints axes = t.node(v).attrs.IntList("axes");
  const Shape shape = t.shape(v);
  for (const size_t k : {1, 0}) {
    const ValueId x = t.in(product, 1 - k), factor = t.in(product, k);
    if (k == 0 && !times) break;
    if (t.shape(x) != t.shape(product) || t.Scalar(factor).has_value()) continue;
    if (!IsConstantAlong(t.shape(factor), t.shape(x), axes)) continue;
    const ValueId sum = t.Reduce(t.node(v).op->name, x, axes, true);
    return t.Reshape(t.Op(times ? "Mul" : "Div", {sum, factor}), shape);
  }
  return std::nullopt;
}

/// A factor of one operand that does not vary along the axis that the product sums.
std::optional<ValueId> ConstantFactorOfMatMul(Terms& t, ValueId v) {
  for (const size_t side : {0, 1}) {
    const ValueId product = t.in(v, side);
    const bool times = t.Is(product, "Mul");
    if (!times && !t.Is(product, "Div")) continue;
    if (NumElements(t.shape(product)) == 0) continue;
    const int64_t rank = static_cast<int64_t>(t.shape(product).size());
    if (rank < 2 || t.shape(t.in(v, 1 - side)).size() < 2) continue;
    for (const size_t k : {1, 0}) {
      const ValueId x = t.in(product, 1 - k), factor = t.in(product, k);
      if (k == 0 && !times) break;
      if (t.shape(x) != t.shape(product) || t.Scalar(factor).has_value()) continue;
      if (!IsConstantAlong(t.shape(factor), t.shape(x), {side == 0 ? rank - 1 : rank - 2}))
        continue;
      const ValueId other = t.in(v, 1 - side);
      const ValueId rest =
          t.Op("MatMul", side == 0 ? std::vector{x, other} : std::vector{other, x});
      return t.Op(times ? "Mul" : "Div", {rest, factor});
    }
  }
  return std::nullopt;
}

constexpr std::array<AxiomRule, 29> kExponentialsRules = {{
    {"exponential of a limited value", "Exp", &ExpOfLimited},
    {"exponential of a sum", "Exp", &ExpOfSum},
    {"exponential of a whole multiple", "Exp", &ExpOfMultiple},
    {"logarithm of an exponential", "Exp", &ExpOfLog},
    {"logarithm of an exponential", "Log", &LogOfExp},
    {"logarithm of a product", "Log", &LogOfProduct},
    {"logarithm of an exponential and one", "Log", &LogOfInverseAndOne},
    {"odd and even functions", "Erf", &Odd},
    {"odd and even functions", "Sinh", &Odd},
    {"odd and even functions", "Asinh", &Odd},
    {"odd and even functions", "Atan", &Odd},
    {"odd and even functions", "Sin", &Odd},
    {"odd and even functions", "Tan", &Odd},
    {"odd and even functions", "Sign", &Odd},
    {"odd and even functions", "Asin", &Odd},
    {"odd and even functions", "Atanh", &Odd},
    {"odd and even functions", "Cos", &Even},
    {"odd and even functions", "Cosh", &Even},
    {"sigmoid and tanh by exponentials", "Sigmoid", &Sigmoid},
    {"sigmoid and tanh by exponentials", "Tanh", &Tanh},
    {"softplus and mish by exponentials", "Softplus", &Softplus},
    {"softplus and mish by exponentials", "Mish", &Mish},
    {"softmax by exponentials", "Softmax", &Softmax},
    {"softmax by exponentials", "LogSoftmax", &LogSoftmax},
    {"softmax by exponentials", "ReduceLogSumExp", &LogSum},
    {"softmax by exponentials", "ReduceLogSum", &LogSum},
    {"factor constant along the reduced axes", "ReduceSum", &ConstantFactor},
    {"factor constant along the reduced axes", "ReduceMean", &ConstantFactor},
    {"factor constant along the reduced axes", "MatMul", &ConstantFactorOfMatMul},
}};

}  // namespace

AxiomGroup ExponentialAxioms() { return {kExponentialsAxioms, kExponentialsRules}; }

}  // namespace mendel
