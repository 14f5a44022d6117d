// The outcome of a search as it is stored: with the stored measurements, enough to make the same
// result again without searching.
#ifndef MENDEL_OPTIMIZER_SEARCH_SEARCH_RECORD_H_
#define MENDEL_OPTIMIZER_SEARCH_SEARCH_RECORD_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "mendel/plan.pb.h"

namespace mendel {

/// A candidate that the whole program was made faster by, wherever it occurred.
struct AcceptedCandidate {
  std::string rule;
  std::map<std::string, int64_t> choices;
  std::string key;  ///< "rule choice=1 .. hash of the subprogram"
  int64_t occurrences = 0;
  int measurement = 0;  ///< how often the whole program had been tried before
  double original_ns = 0;
  double mutant_ns = 0;
  bool early = false;  ///< before algorithms were chosen
  int together = 0;    ///< neighbors of one number were accepted in one comparison; 0: alone
};

struct SearchRecord {
  int stop_reason = 0;
  int algorithm_trial = 0;  ///< SearchSession::AlgorithmTrial
  /// The counters of the search that was made (proposed, screened out, partial, corrected,
  /// measured, rounds, wrong numbers, weight growth).
  plan::SearchCounters counters;
  /// Accepted candidates, in the order of acceptance.
  std::vector<AcceptedCandidate> accepted;
  std::vector<plan::GainPart> parts;
};

std::string PrintSearchRecord(const SearchRecord& record);
/// Nullopt when the text is no record of this version.
std::optional<SearchRecord> ParseSearchRecord(const std::string& text);

}  // namespace mendel

#endif  // MENDEL_OPTIMIZER_SEARCH_SEARCH_RECORD_H_
