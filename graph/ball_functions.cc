// The table of all scalar functions on balls, from names to enclosures.
//
// A name has one meaning in the whole graph language (graph/functions.h), so the table needs no
// operator. Decimal constants of definitions are read with the BallContext's ConstantReading.
#include "base/ball_functions.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <unordered_map>

#include "base/status.h"
#include "graph/arithmetic.h"
#include "graph/tensor.h"

namespace mendel {
namespace {

using Balls = std::span<const Ball>;
using Scalars = std::span<const double>;
using Function = Ball (*)(Balls x, Scalars p);

Ball Exactly(double value) { return Ball::FromDouble(value); }
Ball Bit(bool value) { return Ball::FromInt(value ? 1 : 0); }
Ball EitherBit() { return Ball::Interval(0, 1); }
bool IsPositive(const Ball& x) { return SurelyLess(Ball(), x); }
bool IsNegative(const Ball& x) { return SurelyLess(x, Ball()); }
bool IsNotPositive(const Ball& x) { return SurelyLessOrEqual(x, Ball()); }

/// `above(x)` where x > threshold, else `below(x)`; both when the comparison is open. Functions may
/// be discontinuous at the threshold.
template <class Below, class Above>
Ball Piecewise(const Ball& x, const Ball& threshold, const Below& below, const Above& above) {
  if (SurelyLess(threshold, x)) return above(x);
  if (SurelyLessOrEqual(x, threshold)) return below(x);
  return Hull(below(x), above(x));
}
Ball Itself(const Ball& x) { return x; }

/// log(1 + exp(x)) without a large exponential.
Ball Softplus(const Ball& x) {
  return Piecewise(
      x, Ball(), [](const Ball& v) { return balls::Log1p(balls::Exp(v)); },
      [](const Ball& v) { return v + balls::Log1p(balls::Exp(-v)); });
}

Ball Clamped(const Ball& x, double low, double high) {
  return balls::Min(balls::Max(x, Exactly(low)), Exactly(high));
}

Ball Constant(const Ball& real, double as_double, float as_float) {
  const ConstantReading reading = BallScope::Current().ReadConstant();
  if (reading == ConstantReading::kReal) return real;
  return Exactly(reading == ConstantReading::kDouble ? as_double : static_cast<double>(as_float));
}

Ball Gelu(const Ball& x, bool by_tanh) {
  const Ball half = Exactly(0.5) * x;
  if (!by_tanh) return half * balls::Erfc(-x / balls::Sqrt(Exactly(2)));
  const Ball cubic = Constant(Exactly(44715) / Exactly(1e6), 0.044715, 0.044715F);
  const Ball pi = Constant(balls::Pi(), 3.14159265358979323846, 3.14159265358979323846F);
  return half * (Exactly(1) + balls::Tanh(balls::Sqrt(Exactly(2) / pi) * (x + cubic * x * x * x)));
}

Ball HardSwish(const Ball& x) {
  const Ball sixth = Constant(Exactly(1) / Exactly(6), 1.0 / 6, 1.0F / 6);
  return x * Clamped(x * sixth + Exactly(0.5), 0, 1);
}

/// The remainder with the sign of x. Integral operands have another sign rule and never come
/// here.
Ball Remainder(const Ball& x, const Ball& y) { return x - balls::Trunc(x / y) * y; }

Ball Sign(const Ball& x) {
  if (IsPositive(x)) return Exactly(1);
  if (IsNegative(x)) return Exactly(-1);
  if (x.IsExact()) return Ball();
  const bool zero_or_more = SurelyLessOrEqual(Ball(), x);
  return Ball::Interval(zero_or_more ? 0 : -1, IsNotPositive(x) ? 0 : 1);
}

/// Rounding into a dtype never decreases where its argument increases, so the ends' values bound
/// all others. `p`: see Cast.
Ball Cast(const Ball& x, Scalars p) {
  const DType to = static_cast<DType>(p[0]);
  if (to == DType::kBool) {
    if (!MayBeEqual(x, Ball())) return Bit(true);
    return x.IsExact() ? Bit(false) : EitherBit();
  }
  const auto [low, high] = x.Bounds();
  if (IsFloat(to)) return Ball::Interval(RoundTo(to, low), RoundTo(to, high));
  // Integers: the cast is not monotone for values that do not fit, and differs between backends.
  // Numbers of u64 are carried modulo 2^64, so that only those of i64 are known.
  const double limit = std::exp2(
      std::min<double>(static_cast<double>(8 * DTypeSize(to)) - (IsUnsigned(to) ? 0 : 1), 63));
  if (!(high < limit && low > (IsUnsigned(to) ? -1 : -limit - 1))) return Ball::Indeterminate();
  return Ball::Interval(std::trunc(low), std::trunc(high));
}

/// The same where no number lies beyond the largest one.
Ball CastToFloat8(const Ball& x, Scalars p) {
  const DType to = static_cast<DType>(p[0]);
  const auto [low, high] = x.Bounds();
  const double largest = LargestFloat8(to);
  return low >= -largest && high <= largest ? Cast(x, p) : Ball::Indeterminate();
}

template <bool kMax>
Ball Extreme(Balls x, Scalars) {
  Ball best = x[0];
  for (const Ball& v : x.subspan(1)) best = kMax ? balls::Max(best, v) : balls::Min(best, v);
  return best;
}

Ball IsLess(const Ball& a, const Ball& b) {
  if (SurelyLess(a, b)) return Bit(true);
  return SurelyLessOrEqual(b, a) ? Bit(false) : EitherBit();
}
Ball IsLessOrEqual(const Ball& a, const Ball& b) {
  if (SurelyLessOrEqual(a, b)) return Bit(true);
  return SurelyLess(b, a) ? Bit(false) : EitherBit();
}
Ball IsEqual(const Ball& a, const Ball& b) {
  if (!MayBeEqual(a, b)) return Bit(false);
  return a.IsExact() && b.IsExact() ? Bit(true) : EitherBit();
}

template <Ball (*F)(const Ball&)>
Ball Unary(Balls x, Scalars) {
  return F(x[0]);
}
template <Ball (*F)(const Ball&, const Ball&)>
Ball Binary(Balls x, Scalars) {
  return F(x[0], x[1]);
}

const std::unordered_map<std::string_view, Function>& Table() {
  static const std::unordered_map<std::string_view, Function> table = {
      {"Abs", &Unary<balls::Abs>},
      {"Acos", &Unary<balls::Acos>},
      {"Acosh", &Unary<balls::Acosh>},
      {"Asin", &Unary<balls::Asin>},
      {"Asinh", &Unary<balls::Asinh>},
      {"Atan", &Unary<balls::Atan>},
      {"Atanh", &Unary<balls::Atanh>},
      {"Cast", [](Balls x, Scalars p) { return Cast(x[0], p); }},
      {"CastToFloat8", [](Balls x, Scalars p) { return CastToFloat8(x[0], p); }},
      {"Ceil", &Unary<balls::Ceil>},
      {"Celu",
       [](Balls x, Scalars p) {
         return Piecewise(
             x[0], Ball(),
             [&](const Ball& v) { return Exactly(p[0]) * balls::Expm1(v / Exactly(p[0])); },
             Itself);
       }},
      {"Clip", [](Balls x, Scalars p) { return Clamped(x[0], p[0], p[1]); }},
      {"Cos", &Unary<balls::Cos>},
      {"Cosh", &Unary<balls::Cosh>},
      {"Elu",
       [](Balls x, Scalars p) {
         return Piecewise(
             x[0], Ball(), [&](const Ball& v) { return Exactly(p[0]) * balls::Expm1(v); }, Itself);
       }},
      {"Equal", &Binary<IsEqual>},
      {"Erf", &Unary<balls::Erf>},
      {"Exp", &Unary<balls::Exp>},
      {"Floor", &Unary<balls::Floor>},
      {"Gelu", [](Balls x, Scalars p) { return Gelu(x[0], p[0] != 0); }},
      {"HardSigmoid",
       [](Balls x, Scalars p) { return Clamped(Exactly(p[0]) * x[0] + Exactly(p[1]), 0, 1); }},
      {"HardSwish", &Unary<HardSwish>},
      {"IsInf", [](Balls x, Scalars) { return x[0].IsFinite() ? Bit(false) : EitherBit(); }},
      {"IsNaN", [](Balls x, Scalars) { return x[0].IsFinite() ? Bit(false) : EitherBit(); }},
      {"LeakyRelu",
       [](Balls x, Scalars p) {
         return Piecewise(
             x[0], Ball(), [&](const Ball& v) { return Exactly(p[0]) * v; }, Itself);
       }},
      {"Less", &Binary<IsLess>},
      {"LessOrEqual", &Binary<IsLessOrEqual>},
      {"Log", &Unary<balls::Log>},
      {"Max", &Extreme<true>},
      {"Min", &Extreme<false>},
      {"Mish", [](Balls x, Scalars) { return x[0] * balls::Tanh(Softplus(x[0])); }},
      {"Mod", &Binary<Remainder>},
      {"Pow", &Binary<balls::Pow>},
      {"PowInteger", [](Balls x, Scalars) { return balls::Trunc(balls::Pow(x[0], x[1])); }},
      {"Relu", [](Balls x, Scalars) { return balls::Max(x[0], Ball()); }},
      {"Round", &Unary<balls::RoundToEven>},
      {"Rsqrt", &Unary<balls::Rsqrt>},
      {"Selu",
       [](Balls x, Scalars p) {
         return Exactly(p[1]) * Piecewise(
                                    x[0], Ball(),
                                    [&](const Ball& v) { return Exactly(p[0]) * balls::Expm1(v); },
                                    Itself);
       }},
      {"Sigmoid", [](Balls x, Scalars) { return Exactly(1) / (Exactly(1) + balls::Exp(-x[0])); }},
      {"Sign", &Unary<Sign>},
      {"Sin", &Unary<balls::Sin>},
      {"Sinh", &Unary<balls::Sinh>},
      {"Softplus", &Unary<Softplus>},
      {"Softsign", [](Balls x, Scalars) { return x[0] / (Exactly(1) + balls::Abs(x[0])); }},
      {"Sqrt", &Unary<balls::Sqrt>},
      {"Tan", &Unary<balls::Tan>},
      {"Tanh", &Unary<balls::Tanh>},
      {"ThresholdedRelu",
       [](Balls x, Scalars p) {
         return Piecewise(
             x[0], Exactly(p[0]), [](const Ball&) { return Ball(); }, Itself);
       }},
  };
  return table;
}

}  // namespace

Ball Arithmetic<Ball>::Call(const ScalarFunction& f, std::span<const Ball> arguments,
                            std::span<const double> parameters) const {
  const auto found = Table().find(f.name);
  if (found != Table().end()) return found->second(arguments, parameters);
  BallScope::Current().Fail(Cat("no enclosure of ", f.name), /*for_good=*/true);
  return Ball::Indeterminate();
}

Ball Arithmetic<Ball>::Select(const Ball& condition, const Ball& yes, const Ball& no) const {
  if (!MayBeEqual(condition, Ball())) return yes;
  return condition.IsExact() ? no : Hull(yes, no);
}

}  // namespace mendel
