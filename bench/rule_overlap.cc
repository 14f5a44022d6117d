// Rules that the derivations make needless: on the samples of every exact rule of the search, the
// cheapest program that the derivations reach is compared with the rule's own mutant. Both are
// predicted (DefaultPredictor). Prints a Markdown table; nothing is asserted.
//
// usage: rule_overlap [--samples N] [--print RULE]
//   --print: the samples of RULE that the derivations do not reach.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include "base/check.h"
#include "graph/rewrite.h"
#include "graph/text.h"
#include "mutator/index/generate.h"
#include "mutator/rule.h"

namespace mendel {
namespace {

constexpr std::string_view kDerivations[] = {"compute_needed", "compute_once", "index_derivations",
                                             "skip_zeros", "sums_of_products"};
constexpr int kMostSteps = 4;     // derivations, one after the other
constexpr double kAsGood = 1.02;  // of the mutant's predicted seconds

bool IsDerivation(const Rule& rule) {
  return std::find(std::begin(kDerivations), std::end(kDerivations), rule.name) !=
         std::end(kDerivations);
}

/// The mutant of `rule` with the least predicted time anywhere in `graph`.
std::optional<Mutant> Cheapest(const Rule& rule, const Graph& graph) {
  std::optional<Mutant> best;
  double least = 0;
  for (int32_t node = 0; node < static_cast<int32_t>(graph.nodes().size()); ++node) {
    for (const Match& match : rule.match(graph, node, DefaultPredictor())) {
      auto mutant = MakeMutant(graph, rule, match, DefaultPredictor());
      if (!mutant.ok()) continue;
      const double change = DefaultPredictor().GraphSeconds(mutant->mutant) -
                            DefaultPredictor().GraphSeconds(mutant->original);
      if (best.has_value() && change >= least) continue;
      least = change;
      best = *std::move(mutant);
    }
  }
  return best;
}

/// The least predicted time that the derivations reach from `graph`.
double Derived(Graph graph) {
  for (int step = 0; step < kMostSteps; ++step) {
    std::optional<Graph> next;
    for (const std::string_view name : kDerivations) {
      const std::optional<Mutant> mutant = Cheapest(*FindRule(name), graph);
      if (!mutant.has_value()) continue;
      auto replaced = Replace(graph, mutant->place, mutant->mutant);
      if (!replaced.ok() || DefaultPredictor().GraphSeconds(*replaced) >=
                                DefaultPredictor().GraphSeconds(next.value_or(graph)))
        continue;
      next = *std::move(replaced);
    }
    if (!next.has_value()) break;
    graph = *std::move(next);
  }
  return DefaultPredictor().GraphSeconds(graph);
}

struct Overlap {
  int mutants = 0;  // samples with a mutant that is predicted to be faster
  int reached = 0;  // of these, by derivations
  int slower = 0;   // samples whose mutant is predicted to be no faster
};

Overlap Compare(const Rule& rule, int samples, bool print) {
  Overlap overlap;
  for (int k = 1; k <= samples; ++k) {
    Rng rng(static_cast<uint64_t>(k));
    const auto graph = rule.sample(rng);
    MENDEL_CHECK(graph.ok());
    const std::optional<Mutant> mutant = Cheapest(rule, *graph);
    if (!mutant.has_value()) continue;
    const double before = DefaultPredictor().GraphSeconds(mutant->original),
                 after = DefaultPredictor().GraphSeconds(mutant->mutant);
    if (after >= before) {
      ++overlap.slower;
      continue;
    }
    ++overlap.mutants;
    const double derived = Derived(mutant->original);
    if (derived <= kAsGood * after) {
      ++overlap.reached;
    } else if (print) {
      std::printf("%s\n%s\nbefore %.3g us, the rule %.3g, derived %.3g\n\n",
                  PrintGraph(mutant->original).c_str(), PrintGraph(mutant->mutant).c_str(),
                  before * 1e6, after * 1e6, derived * 1e6);
    }
  }
  return overlap;
}

int Main(int argc, char** argv) {
  int samples = 40;
  std::string_view printed;
  for (int k = 1; k + 1 < argc; k += 2) {
    if (std::strcmp(argv[k], "--samples") == 0) samples = std::atoi(argv[k + 1]);
    if (std::strcmp(argv[k], "--print") == 0) printed = argv[k + 1];
  }
  std::printf("| rule | faster samples | derived, too | no faster |\n|---|---:|---:|---:|\n");
  for (const Rule* rule : AllRules()) {
    if (rule->stage != Stage::kSearch || rule->claim != Claim::kExact || IsDerivation(*rule))
      continue;
    if (!printed.empty() && rule->name != printed) continue;
    const Overlap overlap = Compare(*rule, samples, !printed.empty());
    std::printf("| %s | %d | %d | %d |\n", std::string(rule->name).c_str(), overlap.mutants,
                overlap.reached, overlap.slower);
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace
}  // namespace mendel

int main(int argc, char** argv) { return mendel::Main(argc, argv); }
