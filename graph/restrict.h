// A program cut down to boxes of its outputs: reads and computes only what the boxes need.
#ifndef MENDEL_GRAPH_RESTRICT_H_
#define MENDEL_GRAPH_RESTRICT_H_

#include <span>

#include "absl/status/statusor.h"
#include "graph/graph.h"

namespace mendel {

/// A box of output number `output` of some graph.
struct OutputBox {
  int output = 0;
  Box box;
};

/// A graph with the same inputs as `graph` and one output, output number `output` of `graph`
/// restricted to `box` (InvalidArgument when it is empty or outside). Operators that can compute a
/// part (OpDefinition::restrict) are cut, the others are computed whole and sliced; inputs and
/// weights are sliced where they are read. Exact: every element equals the one of `graph`.
absl::StatusOr<Graph> RestrictToBox(const Graph& graph, int output, const Box& box);

/// The same for many boxes in one graph that shares what they have in common: output k, named
/// "box<k>", is boxes[k]. Boxes of one value that touch are computed as one when that is no more
/// work.
absl::StatusOr<Graph> RestrictToBoxes(const Graph& graph, std::span<const OutputBox> boxes);

/// `graph` with the same inputs and outputs, of which every node computes only what the outputs
/// need: a cut of a value becomes one of its operands. `graph` itself where that saves no work.
absl::StatusOr<Graph> ComputeNeeded(const Graph& graph);

}  // namespace mendel

#endif  // MENDEL_GRAPH_RESTRICT_H_
