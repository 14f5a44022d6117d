#include "mutator/rule.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/status.h"

namespace mendel {
namespace {

std::vector<Rule (*)()>& Makers() {
  static auto* makers = new std::vector<Rule (*)()>();
  return *makers;
}

/// Types of all inputs, then of all outputs.
std::pair<std::vector<TensorType>, std::vector<TensorType>> Interface(const Graph& graph) {
  std::pair<std::vector<TensorType>, std::vector<TensorType>> types;
  for (int32_t id : graph.inputs()) types.first.push_back(graph.node(id).outputs[0]);
  for (const GraphOutput& output : graph.outputs())
    types.second.push_back(graph.type(output.value));
  return types;
}

}  // namespace

std::string_view ClaimName(Claim claim) { return claim == Claim::kExact ? "exact" : "partial"; }

std::span<const Rule* const> AllRules() {
  static const auto* rules = [] {
    auto* sorted = new std::vector<const Rule*>();
    for (Rule (*make)() : Makers()) {
      const Rule* rule = new Rule(make());
      MENDEL_CHECK(!rule->name.empty() && rule->match != nullptr && rule->apply != nullptr &&
                   rule->sample != nullptr);
      sorted->push_back(rule);
    }
    std::sort(sorted->begin(), sorted->end(),
              [](const auto* a, const auto* b) { return a->name < b->name; });
    for (size_t i = 0; i + 1 < sorted->size(); ++i)
      MENDEL_CHECK((*sorted)[i]->name != (*sorted)[i + 1]->name);
    return sorted;
  }();
  return *rules;
}

const Rule* FindRule(std::string_view name) {
  for (const Rule* rule : AllRules()) {
    if (rule->name == name) return rule;
  }
  return nullptr;
}

RuleRegistrar::RuleRegistrar(Rule (*make)()) { Makers().push_back(make); }

absl::StatusOr<Mutant> MakeMutant(const Graph& graph, const Rule& rule, const Match& match,
                                  const Predictor& predictor) {
  Mutant result;
  result.rule = &rule;
  result.match = match;
  MENDEL_ASSIGN_OR_RETURN(result.place, MakeSubprogram(graph, match.nodes));
  if (result.place.nodes.empty())
    return absl::FailedPreconditionError("the match contains weights only");
  MENDEL_ASSIGN_OR_RETURN(result.original, Extract(graph, result.place));
  MENDEL_ASSIGN_OR_RETURN(const Graph mutant, rule.apply(result.original, match, predictor));
  MENDEL_ASSIGN_OR_RETURN(result.mutant, Deduplicate(mutant));
  const absl::Status valid = CheckGraph(result.mutant);
  if (!valid.ok())
    return InternalError("rule ", rule.name, " made an invalid graph: ", valid.message());
  if (Interface(result.mutant) != Interface(result.original)) {
    return InternalError("rule ", rule.name, " made a graph of other inputs or outputs");
  }
  return result;
}

}  // namespace mendel
