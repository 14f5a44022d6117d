#include "verifier/witness/enclosure_precision.h"

#include <algorithm>
#include <cmath>

#include "base/parallel.h"

namespace mendel {
namespace {

constexpr int kBitsBeyondGap = 8;
constexpr int kLeastBitsOfGap = 16;
constexpr int kStep = 16;  ///< precisions are multiples of it
constexpr int kMargin = 8;
constexpr int kUnseenGap = 60;

}  // namespace

// Measured: 1.2 to 2.2 ns a multiply-add at 128 bits and 4 to 6 at 512.
double SecondsInBalls(double flops, int precision_bits) {
  return flops / 2 * (1e-9 + precision_bits * 10e-12) / Parallelism();
}

int PrecisionToPart(const Enclosure& enclosure, const Gap& gap) {
  const double radius = std::max(enclosure.f.Log2Radius(), enclosure.g.Log2Radius());
  const double size = std::max(std::abs(enclosure.f.Middle()), std::abs(enclosure.g.Middle()));
  const double wanted =
      gap.score >= kConvincing ? std::log2(std::abs(gap.f - gap.g)) : std::log2(size) - kUnseenGap;
  const double bits = enclosure.precision_bits + radius - wanted + kMargin;
  if (!(bits < 4 * enclosure.precision_bits)) return 2 * enclosure.precision_bits;
  return static_cast<int>(std::ceil(bits / kStep)) * kStep;
}

int FirstPrecision(const Graph& pairs, double score) {
  const double seen = std::max<double>(kLeastBitsOfGap, -std::log2(score)) + kBitsBeyondGap;
  const double gap_bits = score >= kConvincing ? seen : kFirstBitsCostly;
  const double bits = gap_bits + BitsLost(pairs);
  return static_cast<int>(std::ceil(bits / kStep)) * kStep;
}

}  // namespace mendel
