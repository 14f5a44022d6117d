// Witnesses in the first steps of a loop. Errors of a recurrence grow from step to step, so that
// enclosures of late steps meet. Early ones are cheap, and their steps can be written out, each
// with rounding of its own.
#ifndef MENDEL_VERIFIER_WITNESS_EARLY_STEPS_H_
#define MENDEL_VERIFIER_WITNESS_EARLY_STEPS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "verifier/witness/witness.h"

namespace mendel {

/// A part of a query whose elements need a few steps of the programs' loops.
struct EarlyQuery {
  Box box;      ///< within the query's
  Graph joint;  ///< the box of both programs (JoinByValue), loops written step by step
};

/// Parts of growing cost; empty where no side of the query's box saves most of the steps.
absl::StatusOr<std::vector<EarlyQuery>> EarlyQueries(const Graph& joint, const WitnessQuery& query);

}  // namespace mendel

#endif  // MENDEL_VERIFIER_WITNESS_EARLY_STEPS_H_
