// Large weights that the programs themselves cut (Split, Slice) as one constant a piece.
//
// A fused matrix that a node cuts at run time would be held whole, and its pieces beside it, in
// each of the verifier's formats. All cuts of constants of one type, of both programs, make one
// grid; what is read are its cells. So a weight that one program cuts and the other stores in
// pieces is the same constants, and is the same pieces where one program cuts products instead.
#ifndef MENDEL_VERIFIER_WEIGHTS_WEIGHT_PIECES_H_
#define MENDEL_VERIFIER_WEIGHTS_WEIGHT_PIECES_H_

#include <cstdint>
#include <utility>

#include "absl/status/statusor.h"
#include "graph/graph.h"

namespace mendel {

/// Both graphs with constants of more than `least_elements` that some Split, or Slice by steps of
/// one, cuts (before or behind a Transpose) replaced by their cells. Cells of one symbol have the
/// same names in both graphs, so constants of a type stay whole where a reader other than a matrix
/// product needs several cells. Cells share the bytes of the whole where these are in one run, else
/// equal cells of both graphs share one copy. Outputs, and names of nodes that compute what they
/// did, stay.
absl::StatusOr<std::pair<Graph, Graph>> CutLargeWeights(const Graph& a, const Graph& b,
                                                        int64_t least_elements);

}  // namespace mendel

#endif  // MENDEL_VERIFIER_WEIGHTS_WEIGHT_PIECES_H_
