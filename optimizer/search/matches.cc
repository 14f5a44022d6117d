#include "optimizer/search/matches.h"

#include <utility>

#include "base/status.h"
#include "graph/rewrite.h"
#include "mutator/saving.h"
#include "optimizer/profile/subprogram_key.h"

namespace mendel {

std::vector<const Rule*> RulesOfSearch(const SearchOptions& options, bool all) {
  std::vector<const Rule*> rules;
  for (const Rule* rule : AllRules()) {
    const bool wanted = all || rule->stage == Stage::kSearch;
    if (wanted && options.disabled_rules.count(std::string(rule->name)) == 0) rules.push_back(rule);
  }
  return rules;
}

absl::StatusOr<std::string> MatchKey(const Graph& graph, const Rule& rule, const Match& match) {
  MENDEL_ASSIGN_OR_RETURN(const Subprogram place, MakeSubprogram(graph, match.nodes));
  MENDEL_ASSIGN_OR_RETURN(const Graph original, Extract(graph, place));
  std::string key(rule.name);
  for (const auto& [name, value] : match.choices) key += Cat(" ", name, "=", value);
  return Cat(key, " ", SubprogramKey(original));
}

bool AreChoicesOfOne(std::string_view key, std::string_view other) {
  const auto rule = [](std::string_view text) { return text.substr(0, text.find(' ')); };
  const auto subprogram = [](std::string_view text) { return text.substr(text.rfind(' ') + 1); };
  return rule(key) == rule(other) && subprogram(key) == subprogram(other);
}

std::string MatchName(std::string_view rule, const std::vector<std::string>& nodes) {
  std::string text(rule);
  for (const std::string& node : nodes) text += "\n" + node;
  return text;
}

std::vector<std::string> NodeNames(const Graph& graph, const Match& match) {
  std::vector<std::string> names;
  for (const int32_t id : match.nodes) names.push_back(graph.node(id).name);
  return names;
}

plan::AppliedMutant DescribeMutant(const Graph& graph, const Mutant& mutant,
                                   const Alternative& alternative, double original_ns,
                                   double mutant_ns) {
  plan::AppliedMutant applied;
  applied.set_rule(std::string(mutant.rule->name));
  applied.set_claim(std::string(ClaimName(mutant.rule->claim)));
  for (const auto& [name, value] : mutant.match.choices) (*applied.mutable_choices())[name] = value;
  for (std::string& name : NodeNames(graph, mutant.match)) applied.add_where(std::move(name));
  for (std::string& saved : DescribeSaving(mutant.original, alternative.graph, *mutant.rule))
    applied.add_saved(std::move(saved));
  applied.set_mending(alternative.correction);
  applied.set_flop_share(alternative.flop_share);
  applied.set_original_ns(original_ns);
  applied.set_mutant_ns(mutant_ns);
  for (size_t k = 0; k < alternative.boxes.size(); ++k) {
    plan::MendedOutput* output = applied.add_mended();
    const GraphOutput& corrected = alternative.graph.outputs()[k];
    output->set_output(corrected.name);
    const TensorType& type = alternative.graph.type(corrected.value);
    output->set_elements(NumElements(type));
    for (const int64_t extent : type.shape) output->add_shape(extent);
    for (const Box& box : alternative.boxes[k]) {
      plan::BoxProto* proto = output->add_boxes();
      for (int64_t value : box.begin) proto->add_begin(value);
      for (int64_t value : box.end) proto->add_end(value);
      output->set_wrong_elements(output->wrong_elements() + box.Volume());
    }
  }
  return applied;
}

}  // namespace mendel
