// The search finds the alternatives that together make the fastest program. Every decision rests on
// a stored measurement.
//
// Two methods behind one interface: `beam` improves one program step by step, `egraph` contains all
// alternatives in one e-graph and extracts the cheapest program. Both verify every mutant, search
// equal subprograms once, and keep only what makes the whole program measurably faster. The
// baseline is a candidate, so the result is never slower beyond measured noise.
#ifndef MENDEL_OPTIMIZER_SEARCH_SEARCH_H_
#define MENDEL_OPTIMIZER_SEARCH_SEARCH_H_

#include <atomic>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "mendel/plan.pb.h"
#include "optimizer/profile/profiler.h"
#include "optimizer/search/progress.h"

namespace mendel {

enum class SearchMethod { kBeam, kEGraph };
/// "beam", "egraph".
std::string_view SearchMethodName(SearchMethod method);
absl::StatusOr<SearchMethod> ParseSearchMethod(std::string_view name);

struct SearchOptions {
  SearchMethod method = SearchMethod::kBeam;
  /// Wall-clock time of the search. A measurement starts only if similar ones fit the
  /// remaining time. The result is still compared with the baseline once, which may take a
  /// little more.
  double budget_seconds = 60;
  /// Added to the budget: time that earlier searches left of a common one; negative: time that
  /// other work took. It is no part of the key of the stored outcome.
  double spare_seconds = 0;
  /// Matches (MatchName) that are tried before all others: where a mutant won for other input
  /// shapes.
  std::set<std::string> tried_first;
  int64_t max_candidates = 100000;
  int max_rounds = 4;
  uint64_t seed = 1;
  std::set<std::string> disabled_rules;
  /// Set by a signal handler: the search returns its best so far after the current candidate.
  const std::atomic<bool>* interrupted = nullptr;
  ProgressFunction progress;
  /// egraph: limit on the bytes alive at a time in the delivered program (egraph/extract.h); 0:
  /// none. ResourceExhausted when neither the baseline nor anything at least as fast stays below
  /// it.
  int64_t max_peak_bytes = 0;
  /// Limit on the bytes of tensors that mutants make from weights when a plan is loaded, beyond
  /// what the baseline makes; 0: 1.5 times the stored weights or 64 MiB, whichever is more.
  int64_t max_weight_growth = 0;
  /// No search: the baseline is measured and delivered.
  bool baseline_only = false;
};

/// The content of the e-graph at the end, and the quality of the last extraction.
struct EGraphReport {
  int64_t nodes = 0;
  int64_t classes = 0;
  int64_t applications = 0;  ///< alternatives added, an entry a place
  int64_t banned = 0;        ///< times that the scheduler held a rule back
  int64_t extractions = 0;
  std::string extraction;  ///< "ilp" or "greedy"
  int64_t columns = 0;
  int64_t rows = 0;
  int64_t loop_cuts = 0;
  double extraction_seconds = 0;
  double predicted_ms = 0;    ///< cost of the last extraction
  double lower_bound_ms = 0;  ///< no program of the e-graph costs less
  double gap = 0;             ///< (predicted - lower bound) / predicted
  int64_t peak_bytes = 0;
};

struct SearchResult {
  Variant best;
  /// Mutants in `best`, in the order in which they were applied.
  std::vector<plan::AppliedMutant> mutants;
  plan::SearchCounters counters;
  /// Candidates, those that came farthest first. Method beam only.
  std::vector<plan::Candidate> candidates;
  StopReason stop_reason = StopReason::kSaturated;
  /// Seconds of the search in which rules were matched and mutants made; not part of the plan.
  /// Method beam only.
  double matching_seconds = 0;
  Timing baseline_time;
  Timing best_time;
  /// The gains of the kinds of choices in `best`; empty where it is the baseline.
  std::vector<plan::GainPart> parts;
  /// Conditions under which the two were measured (Profiler::Conditions).
  std::vector<std::string> conditions;
  /// Method egraph only.
  std::optional<EGraphReport> egraph;
  /// A sentence for each candidate or algorithm that was dropped for its numbers
  /// (Profiler::warnings) or for a rule's defect.
  std::vector<std::string> warnings;
};

/// `graph` is the normalized baseline.
absl::StatusOr<SearchResult> Search(const Graph& graph, Profiler& profiler, ProfileCache& cache,
                                    const SearchOptions& options);

}  // namespace mendel

#endif  // MENDEL_OPTIMIZER_SEARCH_SEARCH_H_
