// The search: which alternatives, together, make the fastest program. Every decision rests on a stored measurement.
//
// Cost-ordered: subprograms are tried from the most expensive (measured in the chain) to the cheapest; equal subprograms are
// judged and measured once. What wins alone is then tried in the whole program and kept only if the whole program gets faster.
// The baseline is a candidate, so the result is never slower beyond measured noise.
#ifndef MENDEL_OPTIMIZER_SEARCH_H_
#define MENDEL_OPTIMIZER_SEARCH_H_

#include <atomic>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "mendel/plan.pb.h"
#include "optimizer/profiler.h"
#include "optimizer/progress.h"

namespace mendel {

struct SearchOptions {
  /// Wall-clock time of the search. Nothing is begun that would not end within it, by what its like has cost so far; what is
  /// delivered is still compared with the baseline once, which may take a little more.
  double budget_seconds = 60;
  int64_t max_candidates = 100000;
  int max_rounds = 4;
  uint64_t seed = 1;
  std::set<std::string> disabled_rules;
  /// Set by a signal handler: the search returns its best so far after the current candidate.
  const std::atomic<bool>* interrupted = nullptr;
  ProgressFunction progress;
  /// No search: the baseline is measured and delivered.
  bool baseline_only = false;
};

struct SearchResult {
  Variant best;
  /// Mutants in `best`, in the order in which they were applied.
  std::vector<plan::AppliedMutant> mutants;
  plan::SearchCounters counters;
  StopReason stop_reason = StopReason::kSaturated;
  Timing baseline_time;
  Timing best_time;
  /// A sentence for each candidate or algorithm that was dropped for its numbers (Profiler::warnings).
  std::vector<std::string> warnings;
};

/// `graph` is the normalised baseline.
absl::StatusOr<SearchResult> Search(const Graph& graph, Profiler& profiler, ProfileCache& cache, const SearchOptions& options);

}  // namespace mendel

#endif  // MENDEL_OPTIMIZER_SEARCH_H_
