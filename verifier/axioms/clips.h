// Relu, Clip, Max and Min with a literal as one family: x limited to an interval.
#ifndef MENDEL_VERIFIER_AXIOMS_CLIPS_H_
#define MENDEL_VERIFIER_AXIOMS_CLIPS_H_

#include <limits>
#include <optional>

#include "verifier/axioms/terms.h"

namespace mendel {

/// min(max(x, low), high), low <= high, either may be infinite.
struct Interval {
  static constexpr double kInfinity = std::numeric_limits<double>::infinity();
  double low = -kInfinity;
  double high = kInfinity;
  ValueId x;

  bool OnlyLow() const { return high == kInfinity; }
  bool OnlyHigh() const { return low == -kInfinity; }
};

/// The canonical or the written form of such a value: Relu, Clip, x - Relu(x) (which is min(x, 0)).
std::optional<Interval> AsInterval(const Terms& terms, ValueId value);

/// The canonical form: x, Relu(x), x - Relu(x) or Clip(x).
ValueId Limit(Terms& terms, const Interval& interval);

}  // namespace mendel

#endif  // MENDEL_VERIFIER_AXIOMS_CLIPS_H_
