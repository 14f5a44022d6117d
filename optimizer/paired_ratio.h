// Is one program faster than another one? Judged round by round of an interleaved measurement, so that what slows the machine down
// for a while slows both.
#ifndef MENDEL_OPTIMIZER_PAIRED_RATIO_H_
#define MENDEL_OPTIMIZER_PAIRED_RATIO_H_

#include <span>

namespace mendel {

/// Times of the second program over those of the first one, a round at a time.
struct PairedRatio {
  double median = 1;
  /// The typical ratio lies below it with 95 % confidence: the lower of two bounds of 97.5 %. The signed-rank test's (Wilcoxon
  /// 1945; Hodges and Lehmann, "Estimates of location based on rank tests", 1963) sees small gains, but takes ratios to lie
  /// symmetrically about it: two rounds of seven that something else made half as long again hide a gain of a sixth. The sign
  /// test's (order statistics of the binomial distribution) takes nothing of the kind. Five rounds: the largest ratio. With fewer,
  /// which are too few for that, it is 1.1 times the largest ratio seen.
  double high = 1;
};

/// Of the rounds that both have; at least one.
PairedRatio CompareRounds(std::span<const double> first, std::span<const double> second);

}  // namespace mendel

#endif  // MENDEL_OPTIMIZER_PAIRED_RATIO_H_
