// Matrix products by weights that are too large to be held in other formats, as products by parts
// of them.
//
// A weight of a hundred million floats is 800 MB of field elements or doubles and 5 GB of balls.
// The comparison of two models therefore splits x w, w of many rows, into the sum of products of
// columns of x by rows of w, and x w', w' the transpose, into columns of the result. Both hold for
// all values of x and w; parts share the bytes of the whole.
#ifndef MENDEL_VERIFIER_WEIGHTS_LARGE_WEIGHTS_H_
#define MENDEL_VERIFIER_WEIGHTS_LARGE_WEIGHTS_H_

#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "graph/graph.h"

namespace mendel {

/// Rows [begin, end) of a matrix.
struct RowPart {
  int64_t begin = 0;
  int64_t end = 0;
  ValueId weight;
};

/// x w as the sum of x's columns times w's rows, of which `parts` are all. `name` is that of the
/// sum.
absl::StatusOr<ValueId> ProductByRows(GraphBuilder& builder, ValueId x,
                                      std::span<const RowPart> parts, const std::string& name);

/// Elements of a part: 200 MB of balls.
inline constexpr int64_t kMostElementsOfPart = int64_t{1} << 22;

/// Both graphs with matrices of more than twice `most_elements` read by parts. Parts of one symbol
/// have the same names in both graphs, so only matrices of a shape are split that no node of either
/// graph reads otherwise: as symbols, a part and its whole have nothing in common. Outputs, and
/// names of nodes that compute what they did, stay.
absl::StatusOr<std::pair<Graph, Graph>> SplitLargeWeights(
    const Graph& a, const Graph& b, int64_t most_elements = kMostElementsOfPart);

}  // namespace mendel

#endif  // MENDEL_VERIFIER_WEIGHTS_LARGE_WEIGHTS_H_
