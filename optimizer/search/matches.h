// Matches as every search method uses them: the rules that are tried, keys and names of matches,
// and the plan's description of a mutant.
#ifndef MENDEL_OPTIMIZER_SEARCH_MATCHES_H_
#define MENDEL_OPTIMIZER_SEARCH_MATCHES_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "mendel/plan.pb.h"
#include "mutator/rule.h"
#include "optimizer/search/alternatives.h"
#include "optimizer/search/search.h"

namespace mendel {

/// Rules of Stage::kSearch that are not disabled, and those of Stage::kNormalize too if `all`.
std::vector<const Rule*> RulesOfSearch(const SearchOptions& options, bool all);

/// "rule choice=1 .. hash": equal keys are equal subprograms under one rule and choice.
absl::StatusOr<std::string> MatchKey(const Graph& graph, const Rule& rule, const Match& match);

/// True where two keys (MatchKey) are choices of one rule at equal subprograms.
bool AreChoicesOfOne(std::string_view key, std::string_view other);

/// Rule and names of the nodes that it replaces: the same for a model with inputs of other shapes.
std::string MatchName(std::string_view rule, const std::vector<std::string>& nodes);
/// Names of the nodes of a match.
std::vector<std::string> NodeNames(const Graph& graph, const Match& match);

/// The plan's description of a mutant in it.
plan::AppliedMutant DescribeMutant(const Graph& graph, const Mutant& mutant,
                                   const Alternative& alternative, double original_ns,
                                   double mutant_ns);

}  // namespace mendel

#endif  // MENDEL_OPTIMIZER_SEARCH_MATCHES_H_
