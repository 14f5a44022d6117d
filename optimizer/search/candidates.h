// The candidates of a search: the distinct places of a program at which rules apply.
#ifndef MENDEL_OPTIMIZER_SEARCH_CANDIDATES_H_
#define MENDEL_OPTIMIZER_SEARCH_CANDIDATES_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "mutator/rule.h"
#include "optimizer/search/search_session.h"

namespace mendel {

/// One kind of place: equal subprograms under one rule and choice.
struct CandidateClass {
  const Rule* rule = nullptr;
  std::map<std::string, int64_t> choices;
  std::string key;                 ///< "rule choice=1 .. hash"
  std::vector<std::string> where;  ///< names of the nodes of the first occurrence
  double seconds = 0;              ///< in the chain, of all occurrences
  int64_t occurrences = 0;
  double predicted_original = 0, predicted_mutant = 0;  ///< seconds, the latter with a correction
  double expected_gain = 0;  ///< seconds gained, as predicted, a second of trying
  double own_saving = 0;     ///< share of its own work, by operations and bytes alone
  double saved_share = 0;    ///< the same of the program's seconds
  double seconds_share = 0;  ///< `seconds` of the program's
  bool first_of_all = false;
  std::optional<Mutant> first;
  Alternative alternative;
  AloneTimes alone;
  int measurements = 0;     ///< in the whole program
  size_t best_changed = 0;  ///< how often the best had changed at the last measurement
  double Gain() const { return seconds * (1 - alone.ratio); }
  double GainShare() const { return seconds_share * (1 - alone.ratio); }
  double SecondsOfOne() const {
    return seconds / static_cast<double>(std::max<int64_t>(1, occurrences));
  }
};

/// Every distinct candidate of the session's best program that is not in `tried`, the largest
/// expected gain first. `left_out` becomes true when the time did not suffice for all rules.
absl::StatusOr<std::vector<CandidateClass>> CollectCandidates(SearchSession& session,
                                                              const std::set<std::string>& tried,
                                                              bool& left_out);

/// The largest part of the program's work that one exact candidate saves.
double BestSavedShare(const std::vector<CandidateClass>& classes);

/// True for an exact candidate that saves a fifth of the program's work, and for one that is to be
/// tried first of all.
bool IsLarge(const CandidateClass& candidate);

/// The few exact candidates that save a fifth of the program's work or more, and all that save a
/// tenth of their own, the largest part first; before them those that are to be tried first of all.
std::vector<CandidateClass> ObviousOf(std::vector<CandidateClass> classes);

}  // namespace mendel

#endif  // MENDEL_OPTIMIZER_SEARCH_CANDIDATES_H_
