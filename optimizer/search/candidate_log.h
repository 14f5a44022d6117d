// The log of a search's candidates: what became of each, for the user.
#ifndef MENDEL_OPTIMIZER_SEARCH_CANDIDATE_LOG_H_
#define MENDEL_OPTIMIZER_SEARCH_CANDIDATE_LOG_H_

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "mendel/plan.pb.h"
#include "optimizer/search/candidates.h"

namespace mendel {

/// Outcomes of a candidate, from least to most.
enum class Outcome {
  kNotTried,         ///< the time did not suffice
  kUndecided,        ///< the verifier's time did not suffice, or it has no answer
  kRefused,          ///< for the reason given: wrong, too much arithmetic, too many weights
  kWrongNumbers,     ///< its rounding errors are too large
  kSlowerAlone,      ///< than the subprogram that it replaces
  kNotTriedInWhole,  ///< about as fast alone or faster; the time did not suffice for more
  kSlowerInWhole,    ///< the whole program does not get faster by it
  kUsed,             ///< in the best program at some time
};

/// The name that plans store, for example "slower alone".
std::string_view OutcomeName(Outcome outcome);

/// Not thread-safe.
class CandidateLog {
 public:
  /// Records the outcome of a candidate. A later one replaces it, but kUsed stays and kNotTried
  /// replaces none.
  void Note(const CandidateClass& candidate, Outcome outcome, const std::string& reason = "");
  /// The candidates: used ones first, then by how far they came, then by their expected gain. At
  /// most `most`.
  std::vector<plan::Candidate> Sorted(size_t most) const;

 private:
  struct Entry {
    Outcome outcome = Outcome::kNotTried;
    double expected_gain = 0;
    plan::Candidate candidate;
  };
  std::map<std::string, Entry> entries_;  ///< by CandidateClass::key
};

/// Candidates as the profile cache stores them, and back; none where the bytes are no list.
std::string PrintCandidates(const std::vector<plan::Candidate>& candidates);
std::vector<plan::Candidate> ParseCandidates(const std::string& bytes);

}  // namespace mendel

#endif  // MENDEL_OPTIMIZER_SEARCH_CANDIDATE_LOG_H_
