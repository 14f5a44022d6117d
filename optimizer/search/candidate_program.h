// A program that a search makes from candidates: each is applied wherever it occurs.
#ifndef MENDEL_OPTIMIZER_SEARCH_CANDIDATE_PROGRAM_H_
#define MENDEL_OPTIMIZER_SEARCH_CANDIDATE_PROGRAM_H_

#include <vector>

#include "absl/status/statusor.h"
#include "graph/graph.h"
#include "mendel/plan.pb.h"
#include "optimizer/search/search_record.h"
#include "optimizer/search/search_session.h"

namespace mendel {

/// A program and what it was made by.
struct CandidateProgram {
  Graph graph;
  std::vector<plan::AppliedMutant> mutants;
  std::vector<AcceptedCandidate> candidates;
};

/// Applies the candidate wherever it occurs in `program`; false where it does not. `replaying`: its
/// outcome is stored, and it is applied whatever time is left.
absl::StatusOr<bool> ApplyCandidate(SearchSession& session, const AcceptedCandidate& entry,
                                    bool replaying, CandidateProgram& program);

/// Makes `program` the baseline with the candidate, then with those of `in_best` as far as their
/// places are still there. False where the candidate gains no more than what has to give way to it;
/// another choice of its own rule at its place does not count.
absl::StatusOr<bool> ApplyCandidateFirst(SearchSession& session, const AcceptedCandidate& entry,
                                         const std::vector<AcceptedCandidate>& in_best,
                                         bool replaying, CandidateProgram& program);

}  // namespace mendel

#endif  // MENDEL_OPTIMIZER_SEARCH_CANDIDATE_PROGRAM_H_
