// Limits that the elements of a value never exceed.
#ifndef MENDEL_VERIFIER_AXIOMS_LIMITS_H_
#define MENDEL_VERIFIER_AXIOMS_LIMITS_H_

#include <limits>

#include "verifier/axioms/terms.h"

namespace mendel {

/// Bounds of every element that is a number; infinite where none is known.
struct Limits {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();

  bool Within(const Limits& other) const { return low >= other.low && high <= other.high; }
};

/// All numbers of an integral dtype.
Limits LimitsOfDType(DType dtype);

/// The elements are numbers of the dtype: Booleans, stored, cast, or moved from such. Sums and
/// products are real numbers to the verifier, or 64-bit integers.
bool HoldsItsDType(const Terms& terms, ValueId value);

/// Sums of integers that may wrap have none.
Limits LimitsOf(const Terms& terms, ValueId value, int depth = 8);

}  // namespace mendel

#endif  // MENDEL_VERIFIER_AXIOMS_LIMITS_H_
