#include "optimizer/normalize.h"

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "base/status.h"
#include "base/work.h"
#include "graph/text.h"
#include "optimizer/search/alternatives.h"
#include "verifier/verifier.h"

namespace mendel {
namespace {

constexpr int kMostPasses = 64;  // of a rule; each halves the chains that cancel pair by pair

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

/// The mutant of `rule` at the first place that ends with `node`, where it may take that place.
absl::StatusOr<std::optional<Replacement>> ReplacementAt(const Graph& graph, const Rule& rule,
                                                         int32_t node, Screen& screen,
                                                         std::set<std::string>& faults) {
  CountWork();
  const std::vector<Match> matches = rule.match(graph, node, DefaultPredictor());
  if (matches.empty()) return std::nullopt;
  auto mutant = MakeMutant(graph, rule, matches[0], DefaultPredictor());
  if (absl::IsInternal(mutant.status()))
    faults.insert(DescribeFault(rule, std::string(mutant.status().message())));
  if (!mutant.ok()) return std::nullopt;  // does not apply, e.g. to an expression of weights
  MENDEL_ASSIGN_OR_RETURN(const bool passes, screen.Passes(*mutant));
  if (!passes) return std::nullopt;
  return Replacement{std::move(mutant->place), std::move(mutant->mutant)};
}

/// `graph` after `rule` was applied wherever places do not overlap; nullopt if it applies nowhere.
absl::StatusOr<std::optional<Graph>> ApplyOnce(const Graph& graph, const Rule& rule, Screen& screen,
                                               std::set<std::string>& faults,
                                               const Deadline& deadline) {
  std::vector<Replacement> replacements;
  for (int32_t node = 0; node < static_cast<int32_t>(graph.nodes().size()); ++node) {
    if (deadline.Passed()) break;
    MENDEL_ASSIGN_OR_RETURN(auto replacement, ReplacementAt(graph, rule, node, screen, faults));
    const bool apart = replacement.has_value() &&
                       (replacements.empty() ||
                        replacements.back().place.nodes.back() < replacement->place.nodes.front());
    if (apart) replacements.push_back(*std::move(replacement));
  }
  if (replacements.empty()) return std::nullopt;
  return ReplaceAll(graph, replacements);
}

}  // namespace

absl::StatusOr<Graph> NormalizeBy(std::span<const Rule* const> rules, const Graph& graph,
                                  std::set<std::string>& faults, const Deadline& deadline) {
  MENDEL_ASSIGN_OR_RETURN(Graph current, Deduplicate(graph));
  Screen screen(faults);
  for (const Rule* rule : rules) {
    for (int pass = 0; pass < kMostPasses && !deadline.Passed(); ++pass) {
      MENDEL_ASSIGN_OR_RETURN(std::optional<Graph> applied,
                              ApplyOnce(current, *rule, screen, faults, deadline));
      if (!applied.has_value()) break;
      current = *std::move(applied);
    }
  }
  return Deduplicate(current);
}

absl::StatusOr<Graph> Normalize(const Graph& graph, const std::set<std::string>& disabled,
                                std::set<std::string>& faults, const Deadline& deadline) {
  std::vector<const Rule*> rules;
  for (const Rule* rule : AllRules()) {
    if (rule->stage == Stage::kNormalize && disabled.count(std::string(rule->name)) == 0)
      rules.push_back(rule);
  }
  return NormalizeBy(rules, graph, faults, deadline);
}

}  // namespace mendel
