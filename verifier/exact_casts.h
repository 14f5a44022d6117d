// Exact casts: narrowing casts that round no more than the operators of the narrow dtype do.
//
// Programs are compared over the reals, where an operator's own rounding counts for nothing. A cast
// from f32 to f16 that ends a computation on f16 numbers is such a rounding: the same computation
// in f16 rounds there, too. A cast of a number with f32's precision is a function of its own, which
// loses digits that the program had.
#ifndef MENDEL_VERIFIER_EXACT_CASTS_H_
#define MENDEL_VERIFIER_EXACT_CASTS_H_

#include "absl/status/statusor.h"
#include "graph/graph.h"
#include "verifier/verifier.h"

namespace mendel {

/// `graph` with the attribute `exact` set on every narrowing float cast whose operand is computed
/// of inputs, weights and casts of at most the target's precision. A stored tensor has the
/// precision that its numbers need; in symbolic mode a weight has that of its dtype.
absl::StatusOr<Graph> WithExactCasts(const Graph& graph, WeightMode weights);

}  // namespace mendel

#endif  // MENDEL_VERIFIER_EXACT_CASTS_H_
