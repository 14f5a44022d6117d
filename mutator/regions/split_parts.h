// Linear operators on a concatenation of which some parts repeat more than others, as sums.
#ifndef MENDEL_MUTATOR_REGIONS_SPLIT_PARTS_H_
#define MENDEL_MUTATOR_REGIONS_SPLIT_PARTS_H_

#include "absl/status/statusor.h"
#include "graph/graph.h"

namespace mendel {

/// `graph` with Conv(Concat(x, v), w) as Conv(x, w_x) + Conv(v, w_v), and the same of MatMul, also
/// of a reshaped Concat, where v repeats along an axis along which x does not. `origins`: nodes are
/// named after the number of the node of `graph` that they stand for, those of one output (the
/// others are neither made nor left out).
absl::StatusOr<Graph> SplitRepeatedParts(const Graph& graph, bool origins);

}  // namespace mendel

#endif  // MENDEL_MUTATOR_REGIONS_SPLIT_PARTS_H_
