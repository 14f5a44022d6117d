// Cutting a subprogram out of a graph and putting another program in its place.
#ifndef MENDEL_GRAPH_REWRITE_H_
#define MENDEL_GRAPH_REWRITE_H_

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/graph.h"

namespace mendel {

/// A convex set of nodes of one graph: no path leaves it and comes back. Constant expressions
/// (nodes that depend on no Input) that its nodes read belong to it and are not inputs.
struct Subprogram {
  std::vector<int32_t> nodes;    ///< ascending, without constant expressions
  std::vector<ValueId> inputs;   ///< values read from outside, ascending
  std::vector<ValueId> outputs;  ///< values read outside or graph outputs, ascending
};

/// A copy of Graph::constant, for callers that mark further nodes.
inline std::vector<bool> ConstantExpressions(const Graph& graph) { return graph.constant(); }

/// Textbook arithmetic of what depends on the inputs; weight-only nodes are computed once, when a
/// plan is loaded.
double RunTimeFlops(const Graph& graph);

/// Textbook arithmetic of all nodes, in floating-point operations.
double TotalFlops(const Graph& graph);

/// Completes `nodes` to a subprogram; InvalidArgument when they are not convex or hold an Input.
absl::StatusOr<Subprogram> MakeSubprogram(const Graph& graph, std::vector<int32_t> nodes);

/// The subprogram as a graph of its own: inputs "in0", "in1", ..., outputs "out0", ... in the
/// subprogram's order.
absl::StatusOr<Graph> Extract(const Graph& graph, const Subprogram& subprogram);

/// `graph` with the subprogram replaced. `replacement` has the inputs and outputs that Extract
/// gives, of the same types (InvalidArgument otherwise). Input order, output order and output names
/// of `graph` are kept.
absl::StatusOr<Graph> Replace(const Graph& graph, const Subprogram& subprogram,
                              const Graph& replacement);

/// A place of a graph, and the program to put there.
struct Replacement {
  Subprogram place;
  Graph program;
};

/// Replaces several places at once, in time linear in the graph. The first node of each place must
/// come behind the last one of the place before (InvalidArgument otherwise).
absl::StatusOr<Graph> ReplaceAll(const Graph& graph, std::span<const Replacement> replacements);

/// Copies all nodes of `graph` but its Inputs into `builder`, which stands for them with `inputs`;
/// returns the values that are the graph's outputs.
absl::StatusOr<std::vector<ValueId>> Inline(const Graph& graph, const std::vector<ValueId>& inputs,
                                            GraphBuilder& builder);

/// `graph` without repeated nodes: same operator, attributes and inputs are computed once.
absl::StatusOr<Graph> Deduplicate(const Graph& graph);

}  // namespace mendel

#endif  // MENDEL_GRAPH_REWRITE_H_
