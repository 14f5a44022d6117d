#include "client/html/mutants_html.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>
#include <vector>

#include "base/status.h"
#include "client/format.h"
#include "client/html/html.h"
#include "client/html/mutant_nodes.h"
#include "client/html/pages.h"
#include "graph/text.h"
#include "mutator/rule.h"

namespace mendel {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMostOperators = 24;  // of a mutant's replaced ones
constexpr size_t kMostBytes = 300;     // of an operator's attributes

/// "Conv_1 = Conv(x, f32[8,3,3,3]) {..}: f32[1,8,9,9]".
std::string Equation(const Graph& graph, const Node& node) {
  std::string inputs;
  for (const ValueId& input : node.inputs) {
    const Node& source = graph.node(input.node);
    const std::string name = NameOf(source);
    inputs += inputs.empty() ? "" : ", ";
    if (!name.empty() && !IsConstant(source))
      inputs += name;
    else
      inputs += Cat(IsConstant(source) ? "constant " : std::string(source.op->name) + " ",
                    TypeString(source.outputs[static_cast<size_t>(input.output)]));
  }
  return Cat(node.name, " = ", std::string(node.op->name), "(", inputs, ")",
             Shortened(PrintAttributes(node.attrs), kMostBytes), " : ", TypeString(node.outputs[0]),
             "\n");
}

std::string AlgebraHtml(const std::string& name) {
  const Rule* rule = FindRule(name);
  if (rule == nullptr) return "";
  return Cat("<pre class=\"algebra\">  ", Escaped(rule->before), "\n= ", Escaped(rule->after),
             "</pre>\n", HtmlFacts({{"requires", std::string(rule->precondition)}}));
}

/// The equations of the model's nodes with these names.
std::string ReplacedHtml(const Graph& model, const std::set<std::string>& names) {
  std::string equations;
  size_t count = 0;
  for (const Node& node : model.nodes()) {
    if (IsInput(node) || node.name.empty() || !names.contains(node.name)) continue;
    if (++count <= kMostOperators) equations += Equation(model, node);
  }
  if (count == 0) return "";
  if (count > kMostOperators) equations += Cat(".. ", count - kMostOperators, " more\n");
  return Cat("<details><summary>", count, count == 1 ? " operator" : " operators",
             " of the model replaced</summary><pre>", Escaped(equations), "</pre></details>\n");
}

std::string CorrectedHtml(const plan::MendedOutput& output, const std::string& how) {
  Json boxes = Json::array();
  for (const plan::BoxProto& box : output.boxes()) {
    boxes.push_back({{"begin", std::vector<int64_t>(box.begin().begin(), box.begin().end())},
                     {"end", std::vector<int64_t>(box.end().begin(), box.end().end())},
                     {"status", "wrong"}});
  }
  const Json shape = std::vector<int64_t>(output.shape().begin(), output.shape().end());
  return Cat("<p>Wrong without its correction: ", output.wrong_elements(), " of ",
             output.elements(), " elements of ", Escaped(output.output()),
             ". Corrected by: ", Escaped(how), ".</p>\n", BoxPicture(shape, boxes));
}

std::vector<std::string> PlaceRow(const plan::AppliedMutant& mutant) {
  std::string saved, choices;
  for (const std::string& one : mutant.saved()) saved += (saved.empty() ? "" : "; ") + one;
  for (const auto& [name, value] :
       std::map<std::string, int64_t>(mutant.choices().begin(), mutant.choices().end()))
    choices += Cat(choices.empty() ? "" : ", ", name, " ", value);
  return {PlaceOf(mutant), Decimals(mutant.original_ns() / 1e6, 3),
          Decimals(mutant.mutant_ns() / 1e6, 3), saved, choices};
}

std::string GroupHtml(const Plan& plan, const MutantGroup& group, size_t number) {
  const std::string places =
      group.mutants.size() == 1 ? "" : Cat(", ", group.mutants.size(), " places");
  std::string html =
      Cat("<article id=\"mutant-", number, "\">\n<h3>", Escaped(group.rule), " (",
          Escaped(group.mutants[0]->claim()), ")", places, "</h3>\n", AlgebraHtml(group.rule));
  std::set<std::string> names;
  std::vector<std::vector<std::string>> rows;
  std::string corrections;
  for (const plan::AppliedMutant* mutant : group.mutants) {
    names.insert(mutant->where().begin(), mutant->where().end());
    rows.push_back(PlaceRow(*mutant));
    for (const plan::MendedOutput& output : mutant->mended())
      corrections += CorrectedHtml(output, mutant->mending());
  }
  std::vector<std::string> head = {"replaces", "ms alone", "after", "saves", "choices"};
  const bool choices =
      std::any_of(rows.begin(), rows.end(), [](const auto& row) { return !row.back().empty(); });
  if (!choices) {
    head.pop_back();
    for (auto& row : rows) row.pop_back();
  }
  return Cat(html, HtmlTable(head, rows, {1, 2}), ReplacedHtml(plan.baseline, names), corrections,
             "</article>\n");
}

}  // namespace

std::vector<MutantGroup> GroupMutants(const plan::PlanInfo& info) {
  std::vector<MutantGroup> groups;
  for (const plan::AppliedMutant& mutant : info.mutants()) {
    auto group = std::find_if(groups.begin(), groups.end(), [&](const MutantGroup& one) {
      return one.rule == mutant.rule() && one.mutants[0]->claim() == mutant.claim();
    });
    if (group == groups.end()) group = groups.insert(groups.end(), {mutant.rule(), {}});
    group->mutants.push_back(&mutant);
  }
  return groups;
}

std::string PlaceOf(const plan::AppliedMutant& mutant) {
  std::string where;
  for (const std::string& name : mutant.where())
    if (!name.empty()) where += (where.empty() ? "" : ", ") + name;
  return where.empty() ? "nodes of other mutants" : where;
}

std::string MutantsHtml(const Plan& plan) {
  if (plan.info.mutants().empty())
    return "<p>No mutant won: the plan is the model's own graph.</p>\n";
  std::string html;
  const std::vector<MutantGroup> groups = GroupMutants(plan.info);
  for (size_t k = 0; k < groups.size(); ++k) html += GroupHtml(plan, groups[k], k);
  return html;
}

}  // namespace mendel
