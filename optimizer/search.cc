#include "optimizer/search.h"

#include <utility>

#include "base/status.h"
#include "optimizer/contest.h"
#include "optimizer/search_methods.h"

namespace mendel {

std::string_view SearchMethodName(SearchMethod method) { return method == SearchMethod::kBeam ? "beam" : "egraph"; }

absl::StatusOr<SearchMethod> ParseSearchMethod(std::string_view name) {
  if (name == "beam") return SearchMethod::kBeam;
  if (name == "egraph") return SearchMethod::kEGraph;
  return InvalidInput("there is no search method '", std::string(name), "' (beam, egraph)");
}

absl::StatusOr<SearchResult> Search(const Graph& graph, Profiler& profiler, ProfileCache& cache, const SearchOptions& options) {
  if (options.max_peak_bytes > 0 && options.method != SearchMethod::kEGraph) {
    return Unsupported("a limit on peak memory needs search method egraph");
  }
  Contest contest(graph, profiler, cache, options);
  if (options.baseline_only) {
    MENDEL_RETURN_IF_ERROR(contest.FinalComparison());
    contest.FinishCounters(false);
  } else {
    MENDEL_RETURN_IF_ERROR(options.method == SearchMethod::kBeam ? BeamSearch(contest) : EGraphSearch(contest));
  }
  return std::move(contest.result());
}

}  // namespace mendel
