// A paired ratio decides whether one program is faster than another one. It is made round by round
// of an interleaved measurement, so that what slows the machine down for a while slows both.
#ifndef MENDEL_OPTIMIZER_PROFILE_PAIRED_RATIO_H_
#define MENDEL_OPTIMIZER_PROFILE_PAIRED_RATIO_H_

#include <span>

namespace mendel {

/// Times of the second program over those of the first one, a round at a time.
struct PairedRatio {
  double median = 1;
  /// The typical ratio lies below it with 95 % confidence: the lower of two bounds of 97.5 %. The
  /// signed-rank test (Wilcoxon 1945; Hodges and Lehmann, "Estimates of location based on rank
  /// tests", 1963) sees small gains, but assumes that ratios lie symmetrically about it. Two
  /// disturbed rounds of seven that take half as long again hide a gain of a sixth. The sign test
  /// (order statistics of the binomial distribution) assumes no symmetry. With five rounds it is
  /// the largest ratio. Fewer rounds are too few: it is then 1.1 times the largest ratio.
  double high = 1;
};

/// Compares the rounds that both have; at least one.
PairedRatio CompareRounds(std::span<const double> first, std::span<const double> second);

}  // namespace mendel

#endif  // MENDEL_OPTIMIZER_PROFILE_PAIRED_RATIO_H_
