// Which values of two programs look equal, by evaluating both in doubles on one input: where to cut (sweep.h). Proves nothing.
#ifndef MENDEL_VERIFIER_NUMERIC_TWINS_H_
#define MENDEL_VERIFIER_NUMERIC_TWINS_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/deadline.h"
#include "graph/graph.h"

namespace mendel {

/// A value of A and one of B of the same float type.
using TwinValues = std::pair<ValueId, ValueId>;

struct NumericComparison {
  std::vector<TwinValues> twins;
  bool outputs_differ = false;  ///< beyond rounding, in some output: no proof can succeed
};

/// Pairs whose elements agree up to rounding on one random input, in B's order; every value of B is in one pair at most. Only
/// values that depend on inputs and are neither Input nor of a single repeated number. Weights have their stored values. Inputs are
/// matched by position and have equal types. DeadlineExceeded.
absl::StatusOr<NumericComparison> CompareNumerically(const Graph& a, const Graph& b, uint64_t seed, const Deadline& deadline);

}  // namespace mendel

#endif  // MENDEL_VERIFIER_NUMERIC_TWINS_H_
