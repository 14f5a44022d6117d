#include "optimizer/profile/paired_ratio.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include "base/check.h"

namespace mendel {
namespace {

constexpr double kNormalQuantile = 1.96;  // of 97.5 %
constexpr double kDoubt = 0.025;
constexpr size_t kMostRounds = 64;        // whose pairs are looked at
constexpr size_t kFewRounds = 5;          // from which on the largest ratio is a bound of 95 %
constexpr double kFewRoundsMargin = 1.1;  // on the largest of fewer

double Ratio(double first, double second) {
  if (first > 0) return second / first;
  return second > 0 ? std::numeric_limits<double>::infinity() : 1;
}

/// The mean of all pairs, each with itself, too, that is the signed-rank test's upper bound.
double SignedRankBound(const std::vector<double>& ratios) {
  const size_t stride = (ratios.size() + kMostRounds - 1) / kMostRounds;
  std::vector<double> means;
  for (size_t i = 0; i < ratios.size(); i += stride) {
    for (size_t k = i; k < ratios.size(); k += stride)
      means.push_back(0.5 * (ratios[i] + ratios[k]));
  }
  std::sort(means.begin(), means.end());
  const double count = std::ceil(static_cast<double>(ratios.size()) / static_cast<double>(stride));
  const double spread = std::sqrt(count * (count + 1) * (2 * count + 1) / 24);
  const size_t above = static_cast<size_t>(
      std::ceil(0.5 * static_cast<double>(means.size()) + kNormalQuantile * spread));
  return means[std::min(above, means.size() - 1)];
}

/// The least of the sorted ratios that the typical one exceeds with a chance of kDoubt at most:
/// each lies above that with one half.
double SignBound(const std::vector<double>& sorted) {
  double log_chance = -static_cast<double>(sorted.size()) *
                      std::log(2.0);  // that exactly `above` ratios lie above the typical one
  size_t above = 0;
  for (double chance = std::exp(log_chance); above + 1 < sorted.size() && chance <= kDoubt;
       chance += std::exp(log_chance)) {
    log_chance +=
        std::log(static_cast<double>(sorted.size() - above) / static_cast<double>(above + 1));
    ++above;
  }
  return sorted[sorted.size() - std::max<size_t>(above, 1)];
}

}  // namespace

PairedRatio CompareRounds(std::span<const double> first, std::span<const double> second) {
  std::vector<double> ratios;
  for (size_t k = 0; k < std::min(first.size(), second.size()); ++k)
    ratios.push_back(Ratio(first[k], second[k]));
  MENDEL_CHECK(!ratios.empty());
  const double signed_rank = SignedRankBound(ratios);
  std::sort(ratios.begin(), ratios.end());
  const size_t middle = ratios.size() / 2;
  const double median =
      ratios.size() % 2 == 1 ? ratios[middle] : 0.5 * (ratios[middle - 1] + ratios[middle]);
  if (ratios.size() < kFewRounds) return {median, kFewRoundsMargin * ratios.back()};
  return {median, std::min(signed_rank, SignBound(ratios))};
}

}  // namespace mendel
