#include "base/ball_functions.h"

#include <arb.h>
#include <arb_hypgeom.h>

#include "base/ball_erf.h"

namespace mendel::balls {
namespace {

arb_ptr Raw(Ball& ball) { return static_cast<arb_ptr>(ball.raw()); }
arb_srcptr Raw(const Ball& ball) { return static_cast<arb_srcptr>(ball.raw()); }
slong Precision() { return BallScope::Current().precision(); }
bool IsNaN(const Ball& x) { return arf_is_nan(arb_midref(Raw(x))) != 0; }

/// A function of finite balls, which Arb makes indeterminate where it is undefined.
template <class Function>
Ball OfFinite(const Ball& x, const Function& function) {
  if (!x.IsFinite()) return Ball::Indeterminate();
  Ball result;
  function(Raw(result), Raw(x), Precision());
  return result;
}

/// Larger values than this have no fractional bits that matter, and might not fit into memory as
/// integers.
constexpr double kLargestStep = 0x1p1000;
bool FitsSteps(const Ball& x) {
  const auto [low, high] = x.Bounds();
  return x.IsFinite() && low > -kLargestStep && high < kLargestStep;
}

}  // namespace

Ball Exp(const Ball& x) {
  if (IsNaN(x)) return Ball::Indeterminate();
  Ball result;
  arb_exp(Raw(result), Raw(x), Precision());  // 0 at -infinity
  return result;
}
Ball Expm1(const Ball& x) { return OfFinite(x, arb_expm1); }
Ball Log(const Ball& x) { return OfFinite(x, arb_log); }
Ball Log1p(const Ball& x) { return OfFinite(x, arb_log1p); }
Ball Sqrt(const Ball& x) { return OfFinite(x, arb_sqrt); }
Ball Rsqrt(const Ball& x) { return OfFinite(x, arb_rsqrt); }
Ball Pow(const Ball& x, const Ball& y) {
  if (!y.IsFinite()) return Ball::Indeterminate();
  return OfFinite(x, [&](arb_ptr result, arb_srcptr base, slong precision) {
    arb_pow(result, base, Raw(y), precision);
  });
}
Ball Erf(const Ball& x) { return OfFinite(x, BallErf); }
Ball Erfc(const Ball& x) { return OfFinite(x, arb_hypgeom_erfc); }
Ball Sin(const Ball& x) { return OfFinite(x, arb_sin); }
Ball Cos(const Ball& x) { return OfFinite(x, arb_cos); }
Ball Tan(const Ball& x) { return OfFinite(x, arb_tan); }
Ball Asin(const Ball& x) { return OfFinite(x, arb_asin); }
Ball Acos(const Ball& x) { return OfFinite(x, arb_acos); }
Ball Atan(const Ball& x) { return OfFinite(x, arb_atan); }
Ball Sinh(const Ball& x) { return OfFinite(x, arb_sinh); }
Ball Cosh(const Ball& x) { return OfFinite(x, arb_cosh); }
Ball Tanh(const Ball& x) { return OfFinite(x, arb_tanh); }
Ball Asinh(const Ball& x) { return OfFinite(x, arb_asinh); }
Ball Acosh(const Ball& x) { return OfFinite(x, arb_acosh); }
Ball Atanh(const Ball& x) { return OfFinite(x, arb_atanh); }

Ball Pi() {
  Ball result;
  arb_const_pi(Raw(result), Precision());
  return result;
}

Ball Abs(const Ball& x) {
  if (SurelyLessOrEqual(Ball(), x)) return x;
  if (SurelyLessOrEqual(x, Ball())) return -x;
  return Max(x, -x);
}

Ball Max(const Ball& x, const Ball& y) {
  if (IsNaN(x) || IsNaN(y)) return Ball::Indeterminate();
  if (arb_is_zero(Raw(y))) {  // of rectifiers, without a comparison's allocations
    if (arb_is_nonpositive(Raw(x))) return y;
    if (arb_is_nonnegative(Raw(x))) return x;
  }
  if (SurelyLessOrEqual(x, y)) return y;
  if (SurelyLessOrEqual(y, x)) return x;
  Ball result;
  arb_max(Raw(result), Raw(x), Raw(y), Precision());
  return result;
}

Ball Min(const Ball& x, const Ball& y) { return -Max(-x, -y); }

Ball Floor(const Ball& x) { return FitsSteps(x) ? OfFinite(x, arb_floor) : Ball::Indeterminate(); }
Ball Ceil(const Ball& x) { return FitsSteps(x) ? OfFinite(x, arb_ceil) : Ball::Indeterminate(); }

Ball Trunc(const Ball& x) {
  if (SurelyLessOrEqual(Ball(), x)) return Floor(x);
  if (SurelyLessOrEqual(x, Ball())) return Ceil(x);
  return Hull(Floor(x), Ceil(x));
}

Ball RoundToEven(const Ball& x) {
  const Ball below = Floor(x);
  if (!below.IsExact()) return Hull(below, Ceil(x));
  const Ball half = Ball::FromDouble(0.5);
  const Ball rest = x - below;
  const Ball above = below + Ball::FromInt(1);
  if (SurelyLess(rest, half)) return below;
  if (SurelyLess(half, rest)) return above;
  if (!rest.IsExact()) return Hull(below, above);
  const Ball halved = below * half;
  return MayBeEqual(Floor(halved), halved) ? below : above;
}

}  // namespace mendel::balls
