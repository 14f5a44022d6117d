// Functions of balls. A result encloses the function's values at all numbers of its arguments. It
// is indeterminate where the function is not defined on all of them. The precision is that of the
// thread's BallScope.
#ifndef MENDEL_BASE_BALL_FUNCTIONS_H_
#define MENDEL_BASE_BALL_FUNCTIONS_H_

#include "base/ball.h"

namespace mendel::balls {

Ball Exp(const Ball& x);
Ball Expm1(const Ball& x);
Ball Log(const Ball& x);
Ball Log1p(const Ball& x);
Ball Sqrt(const Ball& x);
Ball Rsqrt(const Ball& x);
Ball Pow(const Ball& x, const Ball& y);
Ball Erf(const Ball& x);
Ball Erfc(const Ball& x);
Ball Sin(const Ball& x);
Ball Cos(const Ball& x);
Ball Tan(const Ball& x);
Ball Asin(const Ball& x);
Ball Acos(const Ball& x);
Ball Atan(const Ball& x);
Ball Sinh(const Ball& x);
Ball Cosh(const Ball& x);
Ball Tanh(const Ball& x);
Ball Asinh(const Ball& x);
Ball Acosh(const Ball& x);
Ball Atanh(const Ball& x);
Ball Pi();

/// Infinite balls are allowed.
Ball Abs(const Ball& x);
Ball Max(const Ball& x, const Ball& y);
Ball Min(const Ball& x, const Ball& y);

/// Steps: a ball around all integers that the values round to. RoundToEven rounds halves to the
/// even neighbor.
Ball Floor(const Ball& x);
Ball Ceil(const Ball& x);
Ball Trunc(const Ball& x);
Ball RoundToEven(const Ball& x);

}  // namespace mendel::balls

#endif  // MENDEL_BASE_BALL_FUNCTIONS_H_
