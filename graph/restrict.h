// A program cut down to one box of one of its outputs: reads and computes only what the box needs.
#ifndef MENDEL_GRAPH_RESTRICT_H_
#define MENDEL_GRAPH_RESTRICT_H_

#include "absl/status/statusor.h"
#include "graph/graph.h"

namespace mendel {

/// A graph with the same inputs as `graph` and one output, output number `output` of `graph` restricted to `box` (InvalidArgument
/// when it is empty or outside). Operators that can compute a part (OpDefinition::restrict) are cut, the others are computed whole
/// and sliced; inputs and weights are sliced where they are read. Exact: every element equals the one of `graph`.
absl::StatusOr<Graph> RestrictToBox(const Graph& graph, int output, const Box& box);

}  // namespace mendel

#endif  // MENDEL_GRAPH_RESTRICT_H_
