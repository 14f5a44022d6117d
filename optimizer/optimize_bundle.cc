#include "optimizer/optimize_bundle.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <string>
#include <utility>

#include "base/status.h"
#include "graph/rewrite.h"
#include "optimizer/search/matches.h"
#include "runtime/plan_bundle.h"

namespace mendel {
namespace {

constexpr double kEvenShare = 0.5;  // of the budget, in equal parts

using Samples = std::vector<std::map<std::string, Tensor>>;

bool Takes(const Graph& graph, const std::map<std::string, Tensor>& sample) {
  return std::all_of(graph.inputs().begin(), graph.inputs().end(), [&](int32_t id) {
    const auto given = sample.find(InputName(graph.node(id)));
    return given != sample.end() && given->second.shape() == graph.type({id, 0}).shape;
  });
}

/// Samples of each graph. Where a graph has none, it is tried on random inputs as ever.
absl::StatusOr<std::vector<Samples>> Distribute(const Samples& samples,
                                                const std::vector<Graph>& graphs) {
  std::vector<Samples> distributed(graphs.size());
  for (size_t s = 0; s < samples.size(); ++s) {
    const auto taker = std::find_if(graphs.begin(), graphs.end(),
                                    [&](const Graph& graph) { return Takes(graph, samples[s]); });
    if (taker == graphs.end())
      return InvalidInput("sample ", s, " has the input shapes of no member of the bundle");
    distributed[static_cast<size_t>(taker - graphs.begin())].push_back(samples[s]);
  }
  return distributed;
}

double SearchSeconds(const OptimizeResult& result) {
  double seconds = 0;
  for (const auto& [phase, taken] : result.phases) seconds += phase == "search" ? taken : 0;
  return seconds;
}

}  // namespace

std::vector<double> SplitBudget(double seconds, const std::vector<Graph>& graphs) {
  std::vector<double> flops;
  for (const Graph& graph : graphs) flops.push_back(std::max(1.0, RunTimeFlops(graph)));
  const double all = std::accumulate(flops.begin(), flops.end(), 0.0);
  std::vector<double> shares;
  for (const double own : flops) {
    const double share =
        seconds * (kEvenShare / static_cast<double>(graphs.size()) + (1 - kEvenShare) * own / all);
    shares.push_back(std::max(1.0, std::round(1e3 * share)) * 1e-3);
  }
  return shares;
}

absl::StatusOr<std::vector<OptimizeResult>> OptimizeBundle(const std::vector<Graph>& originals,
                                                           const OptimizeOptions& options,
                                                           ProfileCache& cache) {
  std::vector<NamedShapes> shapes;
  for (const Graph& graph : originals) shapes.push_back(InputShapes(graph));
  MENDEL_RETURN_IF_ERROR(CheckOffer(shapes));
  std::vector<OptimizeResult> results(originals.size());
  if (originals.size() == 1) {
    MENDEL_ASSIGN_OR_RETURN(results[0], Optimize(originals[0], options, cache));
    return results;
  }
  MENDEL_ASSIGN_OR_RETURN(const std::vector<Samples> samples,
                          Distribute(options.gate.samples, originals));
  const std::vector<double> shares = SplitBudget(options.search.budget_seconds, originals);
  std::vector<size_t> order(originals.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return shares[a] < shares[b]; });

  OptimizeOptions own = options;
  for (const size_t k : order) {
    const std::string inputs = ShapesText(shapes[k]);
    own.gate.samples = samples[k];
    own.search.budget_seconds = shares[k];
    if (options.search.progress) {
      own.search.progress = [&](ProgressEvent event) {
        event.detail = Cat(inputs, event.detail.empty() ? "" : "  ", event.detail);
        options.search.progress(event);
      };
    }
    auto result = Optimize(originals[k], own, cache);
    if (!result.ok()) return Annotate(result.status(), inputs);
    own.search.spare_seconds =
        std::max(0.0, own.search.spare_seconds + shares[k] - SearchSeconds(*result));
    for (const plan::AppliedMutant& mutant : result->search.mutants) {
      own.search.tried_first.insert(
          MatchName(mutant.rule(), {mutant.where().begin(), mutant.where().end()}));
    }
    results[k] = *std::move(result);
  }
  return results;
}

}  // namespace mendel
