// A program of some elements of another one's outputs: those outside boxes.
#ifndef MENDEL_VERIFIER_REGIONS_RIGHT_ELEMENTS_H_
#define MENDEL_VERIFIER_REGIONS_RIGHT_ELEMENTS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "graph/graph.h"
#include "graph/types.h"

namespace mendel {

/// Disjoint boxes that cover `whole` but for `removed`. Beyond 1,024 boxes the answer is
/// incomplete: some of `removed` may still be covered.
std::vector<Box> BoxesOutside(const Box& whole, const std::vector<Box>& removed);

/// The outputs' elements outside `removed[output]`, box by box, each an output of its own.
/// Unimplemented where these are more than 1,024.
absl::StatusOr<Graph> WithoutElements(const Graph& graph,
                                      const std::vector<std::vector<Box>>& removed);

}  // namespace mendel

#endif  // MENDEL_VERIFIER_REGIONS_RIGHT_ELEMENTS_H_
