// The error function of a ball.
#ifndef MENDEL_BASE_BALL_ERF_H_
#define MENDEL_BASE_BALL_ERF_H_

#include <arb.h>

namespace mendel {

/// An enclosure of erf on `x`, which is finite. Thread-safe; tables of coefficients are kept.
void BallErf(arb_ptr result, arb_srcptr x, slong precision);

}  // namespace mendel

#endif  // MENDEL_BASE_BALL_ERF_H_
