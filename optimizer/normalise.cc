#include "optimizer/normalise.h"

#include <utility>

#include "base/hash.h"
#include "base/status.h"
#include "graph/text.h"
#include "mutator/rule.h"
#include "verifier/verifier.h"

namespace mendel {
namespace {

/// Screens one application; equal subprograms (the same text) are screened once.
absl::Status ScreenOnce(const Mutant& mutant, std::set<std::string>& screened) {
  std::vector<Tensor> tensors;
  const PrintOptions options{.tensors = &tensors, .node_names = false};
  std::string key = Cat(mutant.rule->name, PrintGraph(mutant.original, options), PrintGraph(mutant.mutant, options));
  if (!screened.insert(Sha256Hex(key)).second) return absl::OkStatus();
  MENDEL_ASSIGN_OR_RETURN(const bool equal, ScreenedEqual(mutant.original, mutant.mutant, {}));
  if (equal) return absl::OkStatus();
  return InternalError("normalise: the judge refuses rule ", mutant.rule->name, " on\n", PrintGraph(mutant.original));
}

}  // namespace

absl::StatusOr<Graph> Normalise(const Graph& graph, const std::set<std::string>& disabled) {
  MENDEL_ASSIGN_OR_RETURN(Graph current, Deduplicate(graph));
  std::set<std::string> screened;
  for (const Rule* rule : AllRules()) {
    if (rule->stage != Stage::kNormalise || disabled.count(std::string(rule->name)) > 0) continue;
    // A rewrite moves later nodes to new numbers, so the walk goes on at the place of the rewrite.
    for (int32_t node = 0; node < static_cast<int32_t>(current.nodes().size()); ++node) {
      const std::vector<Match> matches = rule->match(current, node);
      if (matches.empty()) continue;
      const auto mutant = MakeMutant(current, *rule, matches[0]);
      if (absl::IsFailedPrecondition(mutant.status())) continue;  // does not apply, e.g. to an expression of weights
      MENDEL_RETURN_IF_ERROR(mutant.status());
      MENDEL_RETURN_IF_ERROR(ScreenOnce(*mutant, screened));
      const size_t before = current.nodes().size();
      MENDEL_ASSIGN_OR_RETURN(current, Replace(current, mutant->place, mutant->mutant));
      node = before == current.nodes().size() ? node : -1;
    }
  }
  return Deduplicate(current);
}

}  // namespace mendel
