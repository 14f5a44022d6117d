// Places of a whole program where a region analysis saves work, each a connected cone of nodes that
// shrink at once.
#ifndef MENDEL_MUTATOR_REGIONS_CANDIDATES_H_
#define MENDEL_MUTATOR_REGIONS_CANDIDATES_H_

#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/graph.h"
#include "mutator/matches_by_last_node.h"
#include "mutator/rule.h"

namespace mendel {

/// A derivation on a whole program: which nodes it changes, and the changed program.
struct Derivation {
  std::vector<bool> (*changed)(const Graph& graph) = nullptr;
  absl::StatusOr<Graph> (*apply)(const Graph& graph) = nullptr;
};

/// The least convex set of nodes that contains `nodes`, without inputs and weight expressions.
std::vector<int32_t> ConvexHull(const Graph& graph, const std::vector<int32_t>& nodes);

/// Every connected set of changed nodes whose mutant saves work.
MatchesByLastNode Candidates(const Graph& graph, const Derivation& derivation);

/// Run-time work of a program: operations, and what is moved.
double WorkOf(const Graph& graph);
/// The derived program, or FailedPrecondition where it saves next to nothing.
absl::StatusOr<Graph> ApplyIfLess(const Graph& graph, const Derivation& derivation);

/// `derived`, or FailedPrecondition(`reason`) where computing only what is needed of `graph` saves
/// as much.
absl::StatusOr<Graph> UnlessNeededSuffices(Graph derived, const Graph& graph, const char* reason);

}  // namespace mendel

#endif  // MENDEL_MUTATOR_REGIONS_CANDIDATES_H_
