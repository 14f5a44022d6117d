// Rewrites that never lose, applied to baseline and plan alike before the search.
#ifndef MENDEL_OPTIMIZER_NORMALIZE_H_
#define MENDEL_OPTIMIZER_NORMALIZE_H_

#include <set>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "base/deadline.h"
#include "graph/graph.h"
#include "mutator/rule.h"

namespace mendel {

/// Applies the rules of Stage::kNormalize (but the disabled ones) until none matches, screening
/// each application with the verifier; then removes repeated nodes. A defect of a rule - the
/// verifier refuses what it made, or it is no program - costs that application only and adds a
/// sentence naming the rule to `faults`; what the verifier cannot decide is left as it was.
/// Past the deadline, what was applied until then counts. Places of a rule are replaced together,
/// so that the work is nearly linear.
absl::StatusOr<Graph> Normalize(const Graph& graph, const std::set<std::string>& disabled,
                                std::set<std::string>& faults,
                                const Deadline& deadline = Deadline::Never());

/// The same by these rules, whatever their stage.
absl::StatusOr<Graph> NormalizeBy(std::span<const Rule* const> rules, const Graph& graph,
                                  std::set<std::string>& faults,
                                  const Deadline& deadline = Deadline::Never());

}  // namespace mendel

#endif  // MENDEL_OPTIMIZER_NORMALIZE_H_
