#include "optimizer/normalize.h"

#include <map>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "base/status.h"
#include "graph/text.h"
#include "optimizer/search/alternatives.h"
#include "verifier/verifier.h"

namespace mendel {
namespace {

/// Screens applications; equal subprograms (the same text) are screened once.
class Screen {
 public:
  explicit Screen(std::set<std::string>& faults) : faults_(faults) {}

  /// True when the mutant may take the original's place.
  absl::StatusOr<bool> Passes(const Mutant& mutant) {
    std::vector<Tensor> tensors;
    const PrintOptions options{.tensors = &tensors, .node_names = false};
    std::string text = Cat(mutant.rule->name, PrintGraph(mutant.original, options),
                           PrintGraph(mutant.mutant, options));
    const auto [known, fresh] = verdicts_.try_emplace(Sha256Hex(text), false);
    if (!fresh) return known->second;
    const auto equal = ScreenedEqual(mutant.original, mutant.mutant, {});
    if (absl::IsUnimplemented(equal.status()) || absl::IsDeadlineExceeded(equal.status()))
      return false;
    MENDEL_RETURN_IF_ERROR(equal.status());
    known->second = *equal;
    if (!*equal)
      faults_.insert(DescribeFault(*mutant.rule, "claims to be exact, which the verifier refuses"));
    return *equal;
  }

 private:
  std::set<std::string>& faults_;
  std::map<std::string, bool> verdicts_;
};

/// `current` after one application of `rule` at a place that ends with `node`; `current` itself
/// where there is none.
absl::StatusOr<Graph> ApplyAt(const Graph& current, const Rule& rule, int32_t node, Screen& screen,
                              std::set<std::string>& faults) {
  const std::vector<Match> matches = rule.match(current, node);
  if (matches.empty()) return current;
  const auto mutant = MakeMutant(current, rule, matches[0]);
  if (absl::IsInternal(mutant.status()))
    faults.insert(DescribeFault(rule, std::string(mutant.status().message())));
  if (!mutant.ok()) return current;  // does not apply, e.g. to an expression of weights
  MENDEL_ASSIGN_OR_RETURN(const bool passes, screen.Passes(*mutant));
  if (!passes) return current;
  return Replace(current, mutant->place, mutant->mutant);
}

}  // namespace

absl::StatusOr<Graph> NormalizeBy(std::span<const Rule* const> rules, const Graph& graph,
                                  std::set<std::string>& faults) {
  MENDEL_ASSIGN_OR_RETURN(Graph current, Deduplicate(graph));
  Screen screen(faults);
  for (const Rule* rule : rules) {
    // A rewrite moves later nodes to new numbers, so the walk goes on at the place of the rewrite.
    for (int32_t node = 0; node < static_cast<int32_t>(current.nodes().size()); ++node) {
      const size_t before = current.nodes().size();
      MENDEL_ASSIGN_OR_RETURN(current, ApplyAt(current, *rule, node, screen, faults));
      node = before == current.nodes().size() ? node : -1;
    }
  }
  return Deduplicate(current);
}

absl::StatusOr<Graph> Normalize(const Graph& graph, const std::set<std::string>& disabled,
                                std::set<std::string>& faults) {
  std::vector<const Rule*> rules;
  for (const Rule* rule : AllRules()) {
    if (rule->stage == Stage::kNormalize && disabled.count(std::string(rule->name)) == 0)
      rules.push_back(rule);
  }
  return NormalizeBy(rules, graph, faults);
}

}  // namespace mendel
