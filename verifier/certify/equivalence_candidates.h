// Equivalence candidates: values of two programs that look equal in doubles on one input. They are
// places to cut (sweep.h) and prove nothing.
#ifndef MENDEL_VERIFIER_CERTIFY_EQUIVALENCE_CANDIDATES_H_
#define MENDEL_VERIFIER_CERTIFY_EQUIVALENCE_CANDIDATES_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/deadline.h"
#include "graph/graph.h"

namespace mendel {

/// A value of A and one of B of the same float type.
using CandidatePair = std::pair<ValueId, ValueId>;

struct NumericComparison {
  std::vector<CandidatePair> candidates;
  bool outputs_differ = false;  ///< beyond rounding, in some output: no proof can succeed
};

/// Evaluates both programs on one random input and pairs values whose elements agree up to
/// rounding. Pairs come in B's order; a value of B is in at most one. Left out are Inputs, values
/// that depend on no input, and values that repeat a single number. Weights have their stored
/// values. Inputs are matched by position and have equal types; so are the outputs that both
/// programs have. Errors: DeadlineExceeded.
absl::StatusOr<NumericComparison> CompareNumerically(const Graph& a, const Graph& b, uint64_t seed,
                                                     const Deadline& deadline);

}  // namespace mendel

#endif  // MENDEL_VERIFIER_CERTIFY_EQUIVALENCE_CANDIDATES_H_
