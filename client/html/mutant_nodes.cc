#include "client/html/mutant_nodes.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "base/status.h"
#include "client/html/mutants_html.h"

namespace mendel {
namespace {

/// The names around a set of nodes: theirs, of what they read and of what reads them.
std::set<std::string> Surroundings(const Graph& graph, const std::set<int32_t>& nodes) {
  std::set<std::string> names;
  const auto add = [&](int32_t node) {
    const std::string name = NameOf(graph.node(node));
    if (!name.empty()) names.insert(name);
  };
  for (const int32_t node : nodes) {
    add(node);
    for (const ValueId& input : graph.node(node).inputs) add(input.node);
    for (const int32_t user : graph.users(node)) add(user);
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

std::string NameOf(const Node& node) { return IsInput(node) ? InputName(node) : node.name; }

MutantNodes FindMutantNodes(const Plan& plan) {
  MutantNodes found;
  std::set<std::string> names;
  for (const Node& node : plan.baseline.nodes()) names.insert(NameOf(node));
  std::vector<std::set<std::string>> around;
  std::map<std::string, int> mutant_of;
  const std::vector<MutantGroup> groups = GroupMutants(plan.info);
  for (int k = 0; k < static_cast<int>(groups.size()); ++k) {
    std::set<std::string> replaced;
    for (const plan::AppliedMutant* mutant : groups[static_cast<size_t>(k)].mutants)
      replaced.insert(mutant->where().begin(), mutant->where().end());
    replaced.erase("");
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

}  // namespace mendel
