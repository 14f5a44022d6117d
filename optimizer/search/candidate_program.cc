#include "optimizer/search/candidate_program.h"

#include <cstdint>
#include <optional>
#include <utility>

#include "base/status.h"
#include "graph/rewrite.h"
#include "mutator/rule.h"
#include "optimizer/normalize.h"
#include "optimizer/search/alternatives.h"
#include "optimizer/search/matches.h"

namespace mendel {
namespace {

bool MayGoOn(const SearchSession& session, bool replaying) {
  return replaying ? !session.Interrupted() : session.MayGoOn();
}

/// The entry's mutants at places of `graph` that do not overlap, as long as `applied`, which
/// gets them, has less than `all`. A mutant of another rule may have taken some places since.
absl::StatusOr<std::vector<Replacement>> FindPlaces(SearchSession& session, const Graph& graph,
                                                    const AcceptedCandidate& entry, size_t all,
                                                    bool replaying,
                                                    std::vector<plan::AppliedMutant>& applied) {
  const Rule& rule = *FindRule(entry.rule);
  std::vector<Replacement> replacements;
  for (int32_t node = 0; node < static_cast<int32_t>(graph.nodes().size()); ++node) {
    if (applied.size() >= all || !MayGoOn(session, replaying)) break;
    for (const Match& match : rule.match(graph, node, session.predictor())) {
      if (match.choices != entry.choices) continue;
      const auto key = MatchKey(graph, rule, match);
      if (!key.ok() || *key != entry.key) continue;
      // Made anew at every place: the weights have other names there. The verdict is stored, so
      // this is quick.
      std::optional<Mutant> mutant = session.Make(graph, rule, match);
      if (!mutant.has_value()) break;
      if (!replacements.empty() &&
          mutant->place.nodes.front() <= replacements.back().place.nodes.back())
        break;
      MENDEL_ASSIGN_OR_RETURN(Alternative alternative,
                              Verify(*mutant, session.Limits(), session.cache()));
      if (alternative.verification != Verification::kEqual &&
          alternative.verification != Verification::kCorrected)
        break;
      applied.push_back(
          DescribeMutant(graph, *mutant, alternative, entry.original_ns, entry.mutant_ns));
      replacements.push_back({std::move(mutant->place), std::move(alternative.graph)});
      break;
    }
  }
  return replacements;
}

double GainOf(const AcceptedCandidate& entry) {
  return static_cast<double>(entry.occurrences) * (entry.original_ns - entry.mutant_ns);
}

}  // namespace

absl::StatusOr<bool> ApplyCandidate(SearchSession& session, const AcceptedCandidate& entry,
                                    bool replaying, CandidateProgram& program) {
  const size_t before = program.mutants.size();
  const size_t all = before + static_cast<size_t>(entry.occurrences);
  CandidateProgram with = program;
  // Places that overlap are replaced in several passes, each of those that are left.
  for (bool found = true; found && with.mutants.size() < all;) {
    MENDEL_ASSIGN_OR_RETURN(const std::vector<Replacement> replacements,
                            FindPlaces(session, with.graph, entry, all, replaying, with.mutants));
    if (!MayGoOn(session, replaying)) return false;
    found = !replacements.empty();
    MENDEL_ASSIGN_OR_RETURN(with.graph, ReplaceAll(with.graph, replacements));
  }
  if (with.mutants.size() == before) return false;
  with.candidates.push_back(entry);
  MENDEL_ASSIGN_OR_RETURN(
      with.graph, Normalize(with.graph, session.options().disabled_rules, session.faults()));
  program = std::move(with);
  return true;
}

absl::StatusOr<bool> ApplyCandidateFirst(SearchSession& session, const AcceptedCandidate& entry,
                                         const std::vector<AcceptedCandidate>& in_best,
                                         bool replaying, CandidateProgram& program) {
  program = {session.baseline().graph, {}, {}};
  MENDEL_ASSIGN_OR_RETURN(const bool applied, ApplyCandidate(session, entry, replaying, program));
  if (!applied) return false;
  double lost = 0;
  for (const AcceptedCandidate& other : in_best) {
    MENDEL_ASSIGN_OR_RETURN(const bool kept, ApplyCandidate(session, other, replaying, program));
    // Times alone do not say which choice of one rule is the fastest here.
    lost += kept || AreChoicesOfOne(entry.key, other.key) ? 0 : GainOf(other);
  }
  return GainOf(entry) > lost;
}

}  // namespace mendel
