// One model for several input shapes, optimized together: the members of a bundle
// (runtime/plan_bundle.h).
#ifndef MENDEL_OPTIMIZER_OPTIMIZE_BUNDLE_H_
#define MENDEL_OPTIMIZER_OPTIMIZE_BUNDLE_H_

#include <vector>

#include "absl/status/statusor.h"
#include "graph/graph.h"
#include "optimizer/pipeline.h"
#include "optimizer/profile/profile_cache.h"

namespace mendel {

/// Seconds of a common budget for the search of each graph: half of it in equal parts, half in
/// proportion to their arithmetic, as verifying takes as long for all of them and measuring does
/// not. Whole milliseconds; depends on the graphs only.
std::vector<double> SplitBudget(double seconds, const std::vector<Graph>& graphs);

/// Optimizes `originals`, the model with its inputs of several shapes, in the order of their
/// arithmetic, and returns the results in the order given. One cache serves all: what is equal is
/// verified and measured once. One budget serves all, too: what a search leaves of its share
/// (SplitBudget) is the next one's. Places at which a mutant won are tried first in those that
/// follow.
///
/// InvalidArgument when a bundle cannot offer these shapes (CheckOffer). A single graph is
/// optimized as it is. The numeric gate takes each sample for the graph whose inputs have its
/// shapes; InvalidArgument when there is none. Otherwise the errors of Optimize, of the first graph
/// that has one, with its input shapes.
absl::StatusOr<std::vector<OptimizeResult>> OptimizeBundle(const std::vector<Graph>& originals,
                                                           const OptimizeOptions& options,
                                                           ProfileCache& cache);

}  // namespace mendel

#endif  // MENDEL_OPTIMIZER_OPTIMIZE_BUNDLE_H_
