#include "optimizer/search/search.h"

#include <utility>

#include "base/status.h"
#include "optimizer/search/search_methods.h"
#include "optimizer/search/search_session.h"

namespace mendel {

std::string_view SearchMethodName(SearchMethod method) {
  return method == SearchMethod::kBeam ? "beam" : "egraph";
}

absl::StatusOr<SearchMethod> ParseSearchMethod(std::string_view name) {
  if (name == "beam") return SearchMethod::kBeam;
  if (name == "egraph") return SearchMethod::kEGraph;
  return InvalidInput("there is no search method '", std::string(name), "' (beam, egraph)");
}

absl::StatusOr<SearchResult> Search(const Graph& graph, Profiler& profiler, ProfileCache& cache,
                                    const SearchOptions& options) {
  if (options.max_peak_bytes > 0 && options.method != SearchMethod::kEGraph) {
    return Unsupported("a limit on peak memory needs search method egraph");
  }
  SearchSession session(graph, profiler, cache, options);
  if (options.baseline_only) {
    if (options.budget_seconds <= 0) session.Stop(StopReason::kBudget);
    MENDEL_RETURN_IF_ERROR(session.FinalComparison());
    session.FinishCounters(false);
  } else {
    MENDEL_RETURN_IF_ERROR(options.method == SearchMethod::kBeam ? BeamSearch(session)
                                                                 : EGraphSearch(session));
  }
  session.ReportOutcome();
  profiler.DropCompiled();
  return std::move(session.result());
}

}  // namespace mendel
