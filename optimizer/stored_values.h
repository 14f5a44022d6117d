// Weights whose stored numbers rules can use (Rule::reads_values): for plans that need not hold for
// other weights.
#ifndef MENDEL_OPTIMIZER_STORED_VALUES_H_
#define MENDEL_OPTIMIZER_STORED_VALUES_H_

#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "base/deadline.h"
#include "graph/graph.h"

namespace mendel {

/// `graph` with those weights as literals on which a rule that reads values matches, disabled rules
/// aside; all others stay symbols. `names` gets the symbols that went (none: the graph is as it
/// was, also when the deadline passes).
absl::StatusOr<Graph> WithUsefulLiterals(const Graph& graph, const std::set<std::string>& disabled,
                                         std::set<std::string>& names,
                                         const Deadline& deadline = Deadline::Never());

}  // namespace mendel

#endif  // MENDEL_OPTIMIZER_STORED_VALUES_H_
