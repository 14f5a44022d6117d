#include "optimizer/paired_ratio.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include "base/check.h"

namespace mendel {
namespace {

constexpr double kNormalQuantile = 1.645;  // of 95 %

double Ratio(double first, double second) {
  if (first > 0) return second / first;
  return second > 0 ? std::numeric_limits<double>::infinity() : 1;
}

}  // namespace

PairedRatio CompareRounds(std::span<const double> first, std::span<const double> second) {
  std::vector<double> ratios;
  for (size_t k = 0; k < std::min(first.size(), second.size()); ++k) ratios.push_back(Ratio(first[k], second[k]));
  MENDEL_CHECK(!ratios.empty());
  std::sort(ratios.begin(), ratios.end());
  const double count = static_cast<double>(ratios.size());
  // The number of ratios below the true median is binomial, here by its normal approximation and one more to be safe.
  const size_t above = static_cast<size_t>(std::ceil(0.5 * count + 0.5 * kNormalQuantile * std::sqrt(count)));
  const size_t middle = ratios.size() / 2;
  const double median = ratios.size() % 2 == 1 ? ratios[middle] : 0.5 * (ratios[middle - 1] + ratios[middle]);
  return {median, ratios[std::min(above, ratios.size() - 1)]};
}

}  // namespace mendel
