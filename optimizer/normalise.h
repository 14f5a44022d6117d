// Rewrites that never lose, applied to baseline and plan alike before the search.
#ifndef MENDEL_OPTIMIZER_NORMALISE_H_
#define MENDEL_OPTIMIZER_NORMALISE_H_

#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "graph/graph.h"

namespace mendel {

/// Applies the rules of Stage::kNormalise (but the disabled ones) until none matches, screening each application with the judge;
/// then removes repeated nodes. Internal names the rule when the judge refuses it.
absl::StatusOr<Graph> Normalise(const Graph& graph, const std::set<std::string>& disabled);

}  // namespace mendel

#endif  // MENDEL_OPTIMIZER_NORMALISE_H_
