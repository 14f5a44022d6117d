#include "client/html/mutants_html.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>
#include <vector>

#include "base/status.h"
#include "client/format.h"
#include "client/html/html.h"
#include "client/html/pages.h"
#include "graph/text.h"
#include "mutator/rule.h"

namespace mendel {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMostOperators = 24;  // of a mutant's replaced ones
constexpr size_t kMostBytes = 300;     // of an operator's attributes

std::string NameOf(const Node& node) { return IsInput(node) ? InputName(node) : node.name; }

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

std::string AlgebraHtml(const Plan& plan, const plan::AppliedMutant& mutant) {
  std::string html;
  if (const Rule* rule = FindRule(mutant.rule()); rule != nullptr) {
    html = Cat("<pre class=\"algebra\">  ", Escaped(rule->before), "\n= ", Escaped(rule->after),
               "</pre>\n", HtmlFacts({{"requires", std::string(rule->precondition)}}));
  }
  const std::set<std::string> where(mutant.where().begin(), mutant.where().end());
  std::string equations;
  size_t count = 0;
  for (const Node& node : plan.baseline.nodes()) {
    if (IsInput(node) || node.name.empty() || !where.contains(node.name)) continue;
    if (++count <= kMostOperators) equations += Equation(plan.baseline, node);
  }
  if (count > kMostOperators) equations += Cat(".. ", count - kMostOperators, " more\n");
  if (count > 0)
    html += Cat("<details><summary>", count, count == 1 ? " operator" : " operators",
                " of the model replaced</summary><pre>", Escaped(equations), "</pre></details>\n");
  return html;
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

std::string MutantHtml(const Plan& plan, const plan::AppliedMutant& mutant, int number) {
  std::string where, saved, choices;
  for (const std::string& name : mutant.where()) where += (where.empty() ? "" : ", ") + name;
  for (const std::string& one : mutant.saved()) saved += (saved.empty() ? "" : "; ") + one;
  for (const auto& [name, value] :
       std::map<std::string, int64_t>(mutant.choices().begin(), mutant.choices().end()))
    choices += Cat(choices.empty() ? "" : ", ", name, " ", value);
  std::vector<std::pair<std::string, std::string>> facts = {
      {"replaces", where},
      {"alone", Cat(Decimals(mutant.original_ns() / 1e6, 3), " ms → ",
                    Decimals(mutant.mutant_ns() / 1e6, 3), " ms")}};
  if (!saved.empty()) facts.emplace_back("saves", saved);
  if (!choices.empty()) facts.emplace_back("choices", choices);
  std::string html =
      Cat("<article id=\"mutant-", number, "\">\n<h3>", Escaped(mutant.rule()), " (",
          Escaped(mutant.claim()), ")</h3>\n", AlgebraHtml(plan, mutant), HtmlFacts(facts));
  for (const plan::MendedOutput& output : mutant.mended())
    html += CorrectedHtml(output, mutant.mending());
  return html + "</article>\n";
}

/// The names around a set of nodes: theirs, of what they read and of what reads them.
std::set<std::string> Surroundings(const Graph& graph, const std::set<int32_t>& nodes) {
  std::set<std::string> names;
  const auto add = [&](int32_t node) {
    const std::string name = NameOf(graph.node(node));
    if (!name.empty()) names.insert(name);
  };
  for (size_t k = 0; k < graph.nodes().size(); ++k) {
    const auto node = static_cast<int32_t>(k);
    const bool inside = nodes.contains(node);
    if (inside) add(node);
    for (const ValueId& input : graph.node(node).inputs) {
      if (inside) add(input.node);
      if (!inside && nodes.contains(input.node)) add(node);
    }
  }
  for (const GraphOutput& output : graph.outputs())
    if (nodes.contains(output.value.node)) names.insert(Cat("output ", output.name));
  return names;
}

/// Groups of nodes that read each other.
std::vector<std::set<int32_t>> Connected(const Graph& graph, const std::set<int32_t>& nodes) {
  std::map<int32_t, int32_t> leader;
  const auto find = [&](int32_t node) {
    while (leader[node] != node) node = leader[node] = leader[leader[node]];
    return node;
  };
  for (const int32_t node : nodes) {
    leader[node] = node;
    for (const ValueId& input : graph.node(node).inputs)
      if (nodes.contains(input.node)) leader[find(input.node)] = find(node);
  }
  std::map<int32_t, std::set<int32_t>> groups;
  for (const int32_t node : nodes) groups[find(node)].insert(node);
  std::vector<std::set<int32_t>> result;
  for (auto& [first, group] : groups) result.push_back(std::move(group));
  return result;
}

/// The number of the set that shares most names with `names`; -1 for none, or for a tie.
int Closest(const std::set<std::string>& names, const std::vector<std::set<std::string>>& sets) {
  int closest = -1;
  size_t most = 0;
  for (size_t k = 0; k < sets.size(); ++k) {
    const auto shared =
        static_cast<size_t>(std::count_if(names.begin(), names.end(), [&](const std::string& name) {
          return sets[k].contains(name);
        }));
    if (shared == most) closest = -1;
    if (shared > most) closest = static_cast<int>(k);
    most = std::max(most, shared);
  }
  return closest;
}

}  // namespace

MutantNodes FindMutantNodes(const Plan& plan) {
  MutantNodes found;
  std::set<std::string> names;
  for (const Node& node : plan.baseline.nodes()) names.insert(NameOf(node));
  std::vector<std::set<std::string>> around;
  std::map<std::string, int> mutant_of;
  for (int k = 0; k < plan.info.mutants_size(); ++k) {
    const auto& where = plan.info.mutants(k).where();
    const std::set<std::string> replaced(where.begin(), where.end());
    std::set<int32_t> nodes;
    for (size_t n = 0; n < plan.baseline.nodes().size(); ++n)
      if (const auto id = static_cast<int32_t>(n); replaced.contains(plan.baseline.node(id).name))
        nodes.insert(id);
    for (const int32_t node : nodes) found.before.emplace(node, k);
    for (const std::string& name : replaced) mutant_of.emplace(name, k);
    around.push_back(Surroundings(plan.baseline, nodes));
  }
  std::set<int32_t> added;
  for (size_t n = 0; n < plan.graph.nodes().size(); ++n) {
    const Node& node = plan.graph.nodes()[n];
    if (IsInput(node) || IsConstant(node)) continue;
    if (const auto kept = mutant_of.find(node.name); kept != mutant_of.end())
      found.after.emplace(static_cast<int32_t>(n), kept->second);
    else if (node.name.empty() || !names.contains(node.name))
      added.insert(static_cast<int32_t>(n));
  }
  for (const std::set<int32_t>& group : Connected(plan.graph, added)) {
    const int mutant = around.size() == 1 ? 0 : Closest(Surroundings(plan.graph, group), around);
    for (const int32_t node : group) found.after.emplace(node, mutant);
  }
  return found;
}

std::string MutantsHtml(const Plan& plan) {
  if (plan.info.mutants().empty())
    return "<p>No mutant won: the plan is the model's own graph.</p>\n";
  std::string html;
  for (int k = 0; k < plan.info.mutants_size(); ++k)
    html += MutantHtml(plan, plan.info.mutants(k), k);
  return html;
}

}  // namespace mendel
