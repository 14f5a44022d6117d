// The precision of enclosures: their expected time, and how many bits part two values.
#ifndef MENDEL_VERIFIER_WITNESS_ENCLOSURE_PRECISION_H_
#define MENDEL_VERIFIER_WITNESS_ENCLOSURE_PRECISION_H_

#include "verifier/witness/witness_pair.h"

namespace mendel {

/// Relative gaps above this are hardly the rounding of double evaluation.
inline constexpr double kConvincing = 1e-12;
inline constexpr int kFirstBits = 64;
/// The first precision of a costly box whose gap may be rounding.
inline constexpr int kFirstBitsCostly = 48;

/// Seconds that ball arithmetic is expected to take.
double SecondsInBalls(double flops, int precision_bits);

/// The bits that make radii smaller than the gap that doubles see or, where that may be their
/// rounding, than 2^-60 of the values.
int PrecisionToPart(const Enclosure& enclosure, const Gap& gap);

/// The first precision for costly `pairs`: as many bits as radii are expected to grow by, and those
/// of the gap that doubles see. `score`: the smallest gap (Gap::score).
int FirstPrecision(const Graph& pairs, double score);

}  // namespace mendel

#endif  // MENDEL_VERIFIER_WITNESS_ENCLOSURE_PRECISION_H_
