// Two programs in canonical form, with the literals of one unfolded as the other writes them.
//
// An exporter folds x a b into x c, c being the dtype's nearest number to a b. No canonical form of
// one program alone shows that: c does not say what it was folded from.
#ifndef MENDEL_VERIFIER_AXIOMS_CANONICAL_PAIR_H_
#define MENDEL_VERIFIER_AXIOMS_CANONICAL_PAIR_H_

#include <map>
#include <set>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "graph/graph.h"
#include "verifier/verifier.h"

namespace mendel {

/// Canonicalize of both programs, whose outputs correspond in order. Where values at the same place
/// of both are literal multiples, and the factor of one is the correctly rounded product of the
/// factors of the other, or its factor twice the correctly rounded root, it takes those. `used`
/// counts axioms and such literals; no decision (Canonicalize) rests on one.
absl::StatusOr<std::pair<Graph, Graph>> CanonicalizePair(
    const Graph& a, const Graph& b, WeightMode weights, std::map<std::string, int>* used = nullptr,
    const std::set<std::string>& deciding_outputs = {});

}  // namespace mendel

#endif  // MENDEL_VERIFIER_AXIOMS_CANONICAL_PAIR_H_
