// Candidates tried in the whole program: what makes it faster is kept.
#ifndef MENDEL_OPTIMIZER_SEARCH_WHOLE_TRIALS_H_
#define MENDEL_OPTIMIZER_SEARCH_WHOLE_TRIALS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "optimizer/search/candidate_log.h"
#include "optimizer/search/candidates.h"
#include "optimizer/search/search_record.h"
#include "optimizer/search/search_session.h"

namespace mendel {

/// Not thread-safe; both arguments must outlive it.
class WholeTrials {
 public:
  WholeTrials(SearchSession& session, CandidateLog& log) : session_(session), log_(log) {}

  /// Tries candidates in the whole program, the greatest gain first; true when the best has
  /// changed.
  absl::StatusOr<bool> TryInTurn(std::vector<CandidateClass> candidates);
  /// Applies all candidates that are clearly faster alone and do not get into each other's way, and
  /// keeps them if the whole program gets faster. Kept ones leave `candidates`, which
  /// are sorted: the greatest gain comes first.
  absl::StatusOr<bool> TryTogether(std::vector<CandidateClass>& candidates);
  /// Applies the candidate wherever it occurs in the current best, or in the baseline where other
  /// mutants have taken its places, and keeps the result when it is faster. A candidate that is
  /// narrowly refused is moved from, to be measured again.
  absl::StatusOr<bool> TryEverywhere(CandidateClass& candidate);
  /// Tries the narrowly refused again until the best has changed, those that may say something new:
  /// predicted seconds of equal programs are equal.
  absl::StatusOr<bool> MeasureAgain();
  /// Accepts again what a record says was accepted. False where some of it is refused now: session
  /// and trials are then reset to the state in which nothing was tried. `algorithm_share`: as in
  /// SearchSession::Begin.
  absl::StatusOr<bool> Replay(const std::vector<AcceptedCandidate>& accepted,
                              double algorithm_share);

  /// In the order of acceptance.
  const std::vector<AcceptedCandidate>& accepted() const { return accepted_; }

 private:
  AcceptedCandidate EntryOf(const CandidateClass& candidate) const;
  absl::StatusOr<bool> TakeAgain(const std::vector<AcceptedCandidate>& accepted,
                                 double algorithm_share);

  SearchSession& session_;
  CandidateLog& log_;
  bool replaying_ = false;  // stored outcomes are quick, and are made again whatever time is left
  int groups_ = 0;          // groups of candidates that were accepted together
  std::vector<AcceptedCandidate> accepted_;
  std::vector<AcceptedCandidate> in_best_;
  std::vector<CandidateClass> refused_;  // narrowly
};

}  // namespace mendel

#endif  // MENDEL_OPTIMIZER_SEARCH_WHOLE_TRIALS_H_
