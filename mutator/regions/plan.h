// The plan of a whole program that computes only what its outputs need, once each: which grid of
// every value, and how.
#ifndef MENDEL_MUTATOR_REGIONS_PLAN_H_
#define MENDEL_MUTATOR_REGIONS_PLAN_H_

#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/graph.h"
#include "graph/grid.h"
#include "mutator/regions/classes.h"

namespace mendel {

/// One output of one node.
struct ValuePlan {
  ValueClasses classes;
  Grid needed;  ///< empty: nothing reads it (scalars: see `is_needed`)
  bool is_needed = false;
  /// The computed part, ascending along every axis, and the way; none where the node is computed
  /// as it is.
  std::optional<GridRestriction> part;
};

struct RegionPlan {
  std::vector<std::vector<ValuePlan>> values;  ///< [node][output]
  /// Nodes that read a part of an input, compute a part, or vanish.
  std::vector<bool> changed;
};

/// The knowledge of elements that a plan uses.
enum class Known {
  kNothing,
  kRepeats,  ///< equal elements are computed once
  kZeros,    ///< sums of products leave out positions at which an operand is zero
};

RegionPlan PlanRegions(const Graph& graph, Known known);

/// The program of the plan: the same inputs and outputs.
absl::StatusOr<Graph> BuildPlan(const Graph& graph, const RegionPlan& plan);

}  // namespace mendel

#endif  // MENDEL_MUTATOR_REGIONS_PLAN_H_
