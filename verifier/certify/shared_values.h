// Values that two programs share, cut free: the cheap first attempt to prove outputs equal.
#ifndef MENDEL_VERIFIER_CERTIFY_SHARED_VALUES_H_
#define MENDEL_VERIFIER_CERTIFY_SHARED_VALUES_H_

#include <cstddef>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/graph.h"

namespace mendel {

/// By node: is it needed for one of outputs [first, last)?
std::vector<bool> OutputCone(const Graph& graph, size_t first, size_t last);

/// `joint` (JoinPrograms) with every float value that both programs compute and that something else
/// than a shared node reads replaced by a further Input. Outputs that agree for all of these agree
/// in `joint`; those that differ may agree there. Nodes that no output needs any more are left out.
/// nullopt when nothing is shared.
absl::StatusOr<std::optional<Graph>> CutAtSharedValues(const Graph& joint);

}  // namespace mendel

#endif  // MENDEL_VERIFIER_CERTIFY_SHARED_VALUES_H_
