#include "optimizer/search/candidates.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/status.h"
#include "mutator/regions/candidates.h"
#include "optimizer/profile/operator_profiles.h"
#include "optimizer/search/matches.h"

namespace mendel {
namespace {

// The budget may not suffice for all candidates: these order them by expected gain.
/// Added to the predicted share of saved time: a candidate that is predicted slower has a chance.
constexpr double kDoubt = 0.25;
/// Smallest share of saved time that a candidate counts with.
constexpr double kLeastGain = 0.02;
/// Typical seconds to verify a candidate. A partial one must be localized and corrected.
constexpr double kExactVerifySeconds = 0.03, kPartialVerifySeconds = 0.4;
/// Typical time of a correction, as a share of the original's.
constexpr double kCorrectedShare = 0.15;

/// Exact candidates that save at least this share of the program's work come first, up to this
/// number a round. So do all that save this share of their own, and a little of the program's.
constexpr double kObvious = 0.2;
constexpr size_t kObviousTries = 3;
constexpr double kClear = 0.1;
constexpr double kLeastOfClear = 0.002;

/// Predicts the candidate's times and what it may save in all its places, per second of trying.
void Predict(const OperatorProfiles& profiles, CandidateClass& candidate) {
  const auto predicted = [&](const Graph& graph) {
    const std::vector<double> seconds = profiles.NodeSeconds(graph);
    return std::reduce(seconds.begin(), seconds.end());
  };
  const bool partial = candidate.rule->claim == Claim::kPartial;
  const double before = predicted(candidate.first->original);
  const double after =
      predicted(candidate.first->mutant) + (partial ? kCorrectedShare * before : 0);
  const double share = before > 0 ? 1 + kDoubt - after / before : kDoubt;
  candidate.predicted_original = before;
  candidate.predicted_mutant = after;
  candidate.expected_gain = candidate.seconds * std::max(kLeastGain, share) /
                            (SearchSession::AloneRuns(candidate.SecondsOfOne()) +
                             (partial ? kPartialVerifySeconds : kExactVerifySeconds));
}

/// Adds the places of one rule to `classes`, by their keys; false when the time is over.
bool CollectOf(SearchSession& session, const Rule& rule, const std::vector<double>& seconds,
               const std::set<std::string>& tried, std::map<std::string, CandidateClass>& classes) {
  const Graph& graph = session.result().best.graph;
  for (int32_t node = 0; node < static_cast<int32_t>(graph.nodes().size()); ++node) {
    if (!session.Affords(0)) return false;  // what was found must still be tried
    for (const Match& match : rule.match(graph, node, session.predictor())) {
      double cost = 0;
      for (int32_t id : match.nodes) cost += seconds[static_cast<size_t>(id)];
      auto key = MatchKey(graph, rule, match);
      if (!key.ok() || tried.count(*key) > 0) continue;
      CandidateClass& candidate = classes[*key];
      if (candidate.rule == nullptr) {
        candidate.rule = &rule;
        candidate.choices = match.choices;
        candidate.key = *key;
        candidate.where = NodeNames(graph, match);
        candidate.first = session.Make(graph, rule, match);
      }
      candidate.first_of_all = candidate.first_of_all || session.TriedFirst(graph, rule, match);
      candidate.seconds += cost;
      ++candidate.occurrences;
    }
  }
  return true;
}

}  // namespace

absl::StatusOr<std::vector<CandidateClass>> CollectCandidates(SearchSession& session,
                                                              const std::set<std::string>& tried,
                                                              bool& left_out) {
  const Stopwatch clock;
  MENDEL_ASSIGN_OR_RETURN(
      const std::vector<double> seconds,
      session.profiler().NodeSeconds(session.result().best, session.measure_seconds() / 2));
  session.NoteWholeSeconds(2 * clock.Seconds());  // two programs rather than one
  const Stopwatch matching;
  std::map<std::string, CandidateClass> classes;
  for (const Rule* rule : RulesOfSearch(session.options(), false))
    left_out = !CollectOf(session, *rule, seconds, tried, classes) || left_out;
  session.result().matching_seconds += matching.Seconds();
  std::vector<CandidateClass> sorted;
  if (classes.empty()) return sorted;
  MENDEL_ASSIGN_OR_RETURN(const OperatorProfiles profiles,
                          OperatorProfiles::Load(session.cache(), session.profiler().Device()));
  const double total = std::reduce(seconds.begin(), seconds.end());
  for (auto& [key, candidate] : classes) {
    if (!candidate.first.has_value()) continue;
    Predict(profiles, candidate);
    const double left = WorkOf(candidate.first->mutant) / WorkOf(candidate.first->original);
    candidate.seconds_share = total > 0 ? candidate.seconds / total : 0;
    candidate.own_saving = 1 - left;
    candidate.saved_share = candidate.seconds_share * candidate.own_saving;
    sorted.push_back(std::move(candidate));
  }
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
    return std::pair(a.first_of_all, a.expected_gain) > std::pair(b.first_of_all, b.expected_gain);
  });
  return sorted;
}

double BestSavedShare(const std::vector<CandidateClass>& classes) {
  double best = 0;
  for (const CandidateClass& candidate : classes) {
    if (candidate.rule->claim != Claim::kPartial) best = std::max(best, candidate.saved_share);
  }
  return best;
}

bool IsLarge(const CandidateClass& candidate) {
  return candidate.first_of_all ||
         (candidate.rule->claim != Claim::kPartial && candidate.saved_share >= kObvious);
}

std::vector<CandidateClass> ObviousOf(std::vector<CandidateClass> classes) {
  std::stable_sort(classes.begin(), classes.end(), [](const auto& a, const auto& b) {
    return std::pair(a.first_of_all, a.saved_share) > std::pair(b.first_of_all, b.saved_share);
  });
  size_t large = 0;
  std::erase_if(classes, [&](const CandidateClass& candidate) {
    const bool exact = candidate.rule->claim != Claim::kPartial;
    if (IsLarge(candidate)) return ++large > kObviousTries;
    return !exact || candidate.own_saving < kClear || candidate.saved_share < kLeastOfClear;
  });
  return classes;
}

}  // namespace mendel
