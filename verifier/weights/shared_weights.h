// Weights that two programs share, as symbols: condition (a) of the region theorem
// (docs/verifier.md, "Regions").
#ifndef MENDEL_VERIFIER_WEIGHTS_SHARED_WEIGHTS_H_
#define MENDEL_VERIFIER_WEIGHTS_SHARED_WEIGHTS_H_

#include "absl/status/statusor.h"
#include "graph/graph.h"
#include "verifier/verifier.h"

namespace mendel {

/// Two programs (JoinPrograms) as the regions see them.
struct RegionProgram {
  Graph graph;
  WeightMode weights = WeightMode::kSymbolic;
  /// Values that differ in `graph` may be equal in the given program.
  bool stronger = false;
};

/// In exact mode every stored float is a literal, and one read at a moving index is a coefficient
/// that varies. But where both programs read one stored tensor, equality for all its values implies
/// equality for those stored, so that regions may take it for a symbol: such constants are named.
/// Otherwise the program as it is.
absl::StatusOr<RegionProgram> MakeRegionProgram(const Graph& joint, WeightMode weights);

}  // namespace mendel

#endif  // MENDEL_VERIFIER_WEIGHTS_SHARED_WEIGHTS_H_
