// Small changes to whole graphs, for tests of the verifier: a graph is built again, node by node,
// and an edit may put other values in a node's place.
#ifndef MENDEL_TESTS_GRAPH_EDIT_H_
#define MENDEL_TESTS_GRAPH_EDIT_H_

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/random.h"
#include "graph/graph.h"

namespace mendel {

/// One node on its way into the new graph.
struct NodeSite {
  int32_t id;                    ///< in the old graph
  const Node& node;              ///< of the old graph
  std::vector<ValueId> inputs;   ///< in the new graph
  std::vector<ValueId> outputs;  ///< of its copy in the new graph, to be used or left
};

/// The values to use for the node's outputs, or empty: those of the copy. Values may be added to
/// the builder at will; what nothing reads is dropped.
using NodeEdit = std::function<std::vector<ValueId>(GraphBuilder&, const NodeSite&)>;

/// InvalidArgument when a value that an edit returns is of another type than the one it replaces.
absl::StatusOr<Graph> EditGraph(const Graph& graph, const NodeEdit& edit);

/// The same program, its nodes renamed and in another topological order. Inputs keep their order.
Graph Shuffled(Rng& rng, const Graph& graph);

/// Every weight (float constant with a symbol) gets random values that follow from its name and
/// `seed`: multiples of 1/4 between -2 and 2, or between 1/4 and 2 when `positive`, so that sums of
/// products of them stay exact in double.
Graph WithRandomWeights(const Graph& graph, uint64_t seed, bool positive);

/// A random permutation of 0 .. count-1.
Ints RandomPermutation(Rng& rng, size_t count);
/// An index below `count`, which must be positive.
size_t PickIndex(Rng& rng, size_t count);

/// Positions [begin, end) of `x` along `axis`, every `step`-th; the builder's refusal is an empty
/// answer.
std::optional<ValueId> SliceOf(GraphBuilder& builder, ValueId x, size_t axis, int64_t begin,
                               int64_t end, int64_t step = 1);
/// GraphBuilder::Add, the refusal an empty answer.
std::optional<ValueId> TryAdd(GraphBuilder& builder, std::string_view op,
                              std::vector<ValueId> inputs, Attributes attrs = {});
/// A literal scalar of `like`'s dtype.
ValueId ScalarLike(GraphBuilder& builder, ValueId like, double value);

}  // namespace mendel

#endif  // MENDEL_TESTS_GRAPH_EDIT_H_
