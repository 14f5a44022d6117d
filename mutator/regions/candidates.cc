#include "mutator/regions/candidates.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/status.h"
#include "graph/rewrite.h"
#include "mutator/regions/plan.h"

namespace mendel {
namespace {

constexpr double kLeastSaving = 0.97;  // of the work that remains
constexpr double kMoreThanNeeded = 0.99;
constexpr double kFlopsPerByte = 2;  // what moving a byte costs, in operations

/// Changed nodes that read each other, or the same value.
std::vector<std::vector<int32_t>> Components(const Graph& graph, const std::vector<bool>& changed) {
  const size_t count = graph.nodes().size();
  std::vector<int32_t> parent(count);
  for (size_t i = 0; i < count; ++i) parent[i] = static_cast<int32_t>(i);
  const auto root = [&](int32_t id) {
    while (parent[static_cast<size_t>(id)] != id) id = parent[static_cast<size_t>(id)];
    return id;
  };
  for (size_t i = 0; i < count; ++i) {
    if (!changed[i]) continue;
    for (ValueId input : graph.nodes()[i].inputs) {
      if (changed[static_cast<size_t>(input.node)])
        parent[static_cast<size_t>(root(input.node))] = root(static_cast<int32_t>(i));
    }
  }
  std::map<int32_t, std::vector<int32_t>> components;
  for (size_t i = 0; i < count; ++i) {
    if (changed[i]) components[root(static_cast<int32_t>(i))].push_back(static_cast<int32_t>(i));
  }
  std::vector<std::vector<int32_t>> result;
  for (auto& [id, nodes] : components) result.push_back(std::move(nodes));
  return result;
}

}  // namespace

MatchesByLastNode Candidates(const Graph& graph, const Derivation& derivation) {
  MatchesByLastNode places;
  std::set<std::vector<int32_t>> known;
  for (const std::vector<int32_t>& component : Components(graph, derivation.changed(graph))) {
    std::vector<int32_t> nodes = ConvexHull(graph, component);
    if (nodes.empty() || !known.insert(nodes).second) continue;
    const auto place = MakeSubprogram(graph, nodes);
    if (!place.ok() || place->nodes.empty()) continue;
    const auto program = Extract(graph, *place);
    if (!program.ok() || !ApplyIfLess(*program, derivation).ok()) continue;
    const int32_t last = nodes.back();
    places[last].push_back({std::move(nodes), {}});
  }
  return places;
}

std::vector<int32_t> ConvexHull(const Graph& graph, const std::vector<int32_t>& nodes) {
  const std::vector<bool> constant = ConstantExpressions(graph);
  const size_t count = graph.nodes().size();
  std::vector<bool> inside(count, false), behind(count, false), before(count, false);
  for (int32_t id : nodes) inside[static_cast<size_t>(id)] = true;
  for (size_t i = 0; i < count; ++i) {
    behind[i] = inside[i];
    for (ValueId input : graph.nodes()[i].inputs)
      behind[i] = behind[i] || behind[static_cast<size_t>(input.node)];
  }
  for (size_t i = count; i-- > 0;) {
    before[i] = before[i] || inside[i];
    if (!before[i]) continue;
    for (ValueId input : graph.nodes()[i].inputs) before[static_cast<size_t>(input.node)] = true;
  }
  std::vector<int32_t> hull;
  for (size_t i = 0; i < count; ++i) {
    if (behind[i] && before[i] && !constant[i] && !IsInput(graph.nodes()[i]))
      hull.push_back(static_cast<int32_t>(i));
  }
  return hull;
}

double WorkOf(const Graph& graph) {
  const std::vector<bool> constant = ConstantExpressions(graph);
  double bytes = 0;
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    const Node& node = graph.nodes()[i];
    if (constant[i] || IsInput(node) || node.op->is_view) continue;
    bytes += WithView(graph, static_cast<int32_t>(i),
                      [&](const NodeView& view) { return CostOf(*node.op, view).bytes; });
  }
  return RunTimeFlops(graph) + kFlopsPerByte * bytes;
}

absl::StatusOr<Graph> ApplyIfLess(const Graph& graph, const Derivation& derivation) {
  MENDEL_ASSIGN_OR_RETURN(const Graph derived, derivation.apply(graph));
  MENDEL_ASSIGN_OR_RETURN(Graph mutant, Deduplicate(derived));
  if (WorkOf(mutant) > kLeastSaving * WorkOf(graph))
    return absl::FailedPreconditionError("nothing is saved");
  return mutant;
}

absl::StatusOr<Graph> UnlessNeededSuffices(Graph derived, const Graph& graph, const char* reason) {
  const auto needed = BuildPlan(graph, PlanRegions(graph, Known::kNothing));
  if (needed.ok() && WorkOf(derived) > kMoreThanNeeded * WorkOf(*needed))
    return absl::FailedPreconditionError(reason);
  return derived;
}

}  // namespace mendel
