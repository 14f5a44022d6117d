// Elementwise operators, operators along axes and reductions are computed in the layout of their
// operands, without the Transposes around them.
//
//   before  Transpose(f(Transpose(x, p), Transpose(y, p), w), p^-1)    channels-last exports
//   after   f(x, y, Transpose(w, p^-1))
//   before  ReduceMean(Transpose(x, p)){axes}
//   after   ReduceMean(x){p of axes}
//
// Exact: f computes every position, or every line along its axes, by itself. All connected
// operators change together. What is read or given in the old layout is transposed there; only
// mutants that transpose fewer elements are offered.

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "base/status.h"
#include "graph/emitter.h"
#include "graph/rewrite.h"
#include "mutator/any_layout.h"
#include "mutator/matches_by_last_node.h"
#include "mutator/parallel.h"
#include "mutator/regions/candidates.h"
#include "mutator/rule.h"
#include "mutator/sample.h"

namespace mendel::rules::transposes_across {
namespace {

constexpr size_t kMostNodes = 128;     // of a site
constexpr size_t kMostTogether = 512;  // of all sites and what lies between them

/// All members that are connected with `node`, ascending; empty when there are too many.
std::vector<int32_t> Component(const Graph& graph, int32_t node) {
  std::set<int32_t> members = {node};
  std::vector<int32_t> open = {node};
  while (!open.empty() && members.size() <= kMostNodes) {
    const int32_t id = open.back();
    open.pop_back();
    std::vector<int32_t> neighbors;
    if (!EndsLayout(graph.node(id))) neighbors = graph.users(id);
    for (const ValueId input : graph.node(id).inputs) {
      if (!EndsLayout(graph.node(input.node))) neighbors.push_back(input.node);
    }
    for (const int32_t neighbor : neighbors) {
      if (WorksInAnyLayout(graph, neighbor) && members.insert(neighbor).second)
        open.push_back(neighbor);
    }
  }
  if (members.size() > kMostNodes) return {};
  return {members.begin(), members.end()};
}

Ints InverseOf(const Ints& perm) {
  Ints inverse(perm.size());
  for (size_t d = 0; d < perm.size(); ++d)
    inverse[static_cast<size_t>(perm[d])] = static_cast<int64_t>(d);
  return inverse;
}

bool IsTranspose(const Graph& graph, int32_t id, const Ints& perm) {
  const Node& node = graph.node(id);
  return node.op->name == "Transpose" && node.attrs.IntList("perm") == perm;
}

/// Members and the Transposes at their border that disappear.
struct Site {
  Ints perm;                     ///< perm of the Transposes before
  std::vector<int32_t> members;  ///< ascending
  std::set<int32_t> before, behind;
  double gain = 0;  ///< elements that are transposed no more
};

Site SiteOf(const Graph& graph, const std::vector<int32_t>& members, const Ints& perm) {
  Site site{perm, members, {}, {}, 0};
  const std::set<int32_t> inside(members.begin(), members.end());
  const Ints inverse = InverseOf(perm);
  std::set<ValueId> given;
  for (const int32_t id : members) {
    const double computed = static_cast<double>(NumElements(graph.node(id).outputs[0]));
    if (EndsLayout(graph.node(id))) {
      const Ints order = KeptOrder(graph.node(id), perm);
      if (!std::is_sorted(order.begin(), order.end())) site.gain -= computed;
    } else {
      bool read = graph.IsOutput(id);
      for (const int32_t user : graph.users(id)) {
        if (inside.count(user) > 0) continue;
        if (IsTranspose(graph, user, inverse)) {
          if (site.behind.insert(user).second) site.gain += computed;
        } else {
          read = true;
        }
      }
      if (read) site.gain -= computed;
    }
    for (const ValueId input : graph.node(id).inputs) {
      if (IsWeight(graph, input) || inside.count(input.node) > 0 || !given.insert(input).second)
        continue;
      const double elements = static_cast<double>(NumElements(graph.type(input)));
      if (!IsTranspose(graph, input.node, perm)) {
        site.gain -= elements;
        continue;
      }
      site.before.insert(input.node);
      const std::vector<int32_t>& users = graph.users(input.node);
      const bool gone = !graph.IsOutput(input.node) &&
                        std::all_of(users.begin(), users.end(),
                                    [&](int32_t user) { return inside.count(user) > 0; });
      if (gone) site.gain += elements;
    }
  }
  return site;
}

/// The best site of the members that end with `node`.
std::optional<Site> SiteEndingAt(const Graph& graph, const std::vector<int32_t>& members) {
  std::set<Ints> perms;
  for (const int32_t id : members) {
    for (const ValueId input : graph.node(id).inputs) {
      if (graph.node(input.node).op->name == "Transpose" && !IsWeight(graph, input))
        perms.insert(graph.node(input.node).attrs.IntList("perm"));
    }
    if (EndsLayout(graph.node(id))) continue;
    for (const int32_t user : graph.users(id)) {
      if (graph.node(user).op->name == "Transpose")
        perms.insert(InverseOf(graph.node(user).attrs.IntList("perm")));
    }
  }
  std::optional<Site> best;
  for (const Ints& perm : perms) {
    Site site = SiteOf(graph, members, perm);
    if (site.gain > 0 && (!best.has_value() || site.gain > best->gain)) best = std::move(site);
  }
  return best;
}

/// The nodes of the site that ends with `node`; none where no site does.
std::vector<int32_t> NodesOfSite(const Graph& graph, int32_t node) {
  // The last of all nodes of a site: a member, or a Transpose behind one.
  int32_t member = node;
  if (graph.node(node).op->name == "Transpose") member = graph.node(node).inputs[0].node;
  if (!WorksInAnyLayout(graph, member) || (member != node && EndsLayout(graph.node(member))))
    return {};
  const std::vector<int32_t> members = Component(graph, member);
  if (members.empty()) return {};
  const std::optional<Site> site = SiteEndingAt(graph, members);
  if (!site.has_value()) return {};
  std::vector<int32_t> nodes = members;
  nodes.insert(nodes.end(), site->before.begin(), site->before.end());
  nodes.insert(nodes.end(), site->behind.begin(), site->behind.end());
  std::sort(nodes.begin(), nodes.end());
  if (nodes.back() != node || !MakeSubprogram(graph, nodes).ok()) return {};
  return nodes;
}

/// Every site, and all sites at once with biases taken in: in one layout everywhere a backend may
/// gain where each step alone makes it convert.
MatchesByLastNode AllMatches(const Graph& graph) {
  MatchesByLastNode matches;
  std::vector<int32_t> all;
  for (int32_t node = 0; node < static_cast<int32_t>(graph.nodes().size()); ++node) {
    const std::vector<int32_t> nodes = NodesOfSite(graph, node);
    if (nodes.empty()) continue;
    matches[node].push_back({nodes, {{"all", 0}}});
    all.insert(all.end(), nodes.begin(), nodes.end());
    for (const int32_t id : nodes) {  // layers that may take a constant in
      for (const ValueId input : graph.node(id).inputs) {
        if (graph.node(input.node).op->name == "Conv" && graph.OnlyUser(input.node) >= 0)
          all.push_back(input.node);
      }
    }
  }
  if (matches.size() < 2) return matches;
  const std::vector<int32_t> hull = ConvexHull(graph, all);
  if (hull.size() <= kMostTogether && MakeSubprogram(graph, hull).ok())
    matches[hull.back()].push_back({hull, {{"all", 1}}});
  return matches;
}

std::vector<Match> FindMatches(const Graph& graph, int32_t node, const Predictor&) {
  return MatchesEndingAt(graph, node, &AllMatches);
}

/// A weight in the layout of the operands, broadcast as before.
ValueId TransposedWeight(Emitter& e, const Graph& graph, ValueId weight, const Ints& inverse) {
  const ValueId value = e.CopyConstantExpression(graph, weight);
  Shape shape = e.shape(value);
  if (NumElements(shape) == 1) return value;
  shape.insert(shape.begin(), inverse.size() - shape.size(), 1);
  return e.Transpose(e.Reshape(value, shape), inverse);
}

absl::StatusOr<Graph> ApplyToSite(const Graph& subprogram) {
  std::vector<int32_t> members;
  for (int32_t id = 0; id < static_cast<int32_t>(subprogram.nodes().size()); ++id) {
    if (WorksInAnyLayout(subprogram, id)) members.push_back(id);
  }
  const std::optional<Site> site = SiteEndingAt(subprogram, members);
  if (!site.has_value()) return absl::FailedPreconditionError("no Transposes to gain");
  const Ints inverse = InverseOf(site->perm);
  Emitter e;
  const std::vector<ValueId> inputs = e.InputsOf(subprogram);
  std::map<ValueId, ValueId> moved;  // in the layout without Transposes
  const auto operand = [&](ValueId value) {
    const auto known = moved.find(value);
    if (known != moved.end()) return known->second;
    const Node& node = subprogram.node(value.node);
    const bool undone = site->before.count(value.node) > 0;
    const ValueId made = undone ? OperandOf(e, subprogram, node.inputs[0], inputs)
                                : e.Transpose(OperandOf(e, subprogram, value, inputs), inverse);
    return moved.emplace(value, made).first->second;
  };
  for (const int32_t id : members) {
    const Node& node = subprogram.node(id);
    std::vector<ValueId> operands;
    for (const ValueId input : node.inputs) {
      operands.push_back(IsWeight(subprogram, input)
                             ? TransposedWeight(e, subprogram, input, inverse)
                             : operand(input));
    }
    ValueId made = e.Op(node.op->name, operands, MovedAttributes(node, site->perm), node.name);
    if (EndsLayout(node)) {
      const Ints order = KeptOrder(node, site->perm);
      if (!std::is_sorted(order.begin(), order.end())) made = e.Transpose(made, order);
    }
    moved[{id, 0}] = made;
  }
  for (const GraphOutput& output : subprogram.outputs()) {
    const int32_t id = output.value.node;
    if (site->behind.count(id) > 0) {
      e.Output(output.name, moved.at(subprogram.node(id).inputs[0]));
    } else if (site->before.count(id) > 0) {
      e.Output(
          output.name,
          e.Transpose(OperandOf(e, subprogram, subprogram.node(id).inputs[0], inputs), site->perm));
    } else if (EndsLayout(subprogram.node(id))) {
      e.Output(output.name, moved.at(output.value));
    } else {
      e.Output(output.name, e.Transpose(moved.at(output.value), site->perm));
    }
  }
  return e.Finish();
}

/// `graph` with constants added behind convolutions as their biases.
absl::StatusOr<Graph> WithBiases(Graph graph, const Predictor& predictor) {
  const Rule* rule = FindRule("constants_into_conv");
  for (int32_t node = 0; rule != nullptr && node < static_cast<int32_t>(graph.nodes().size());) {
    const std::vector<Match> matches = rule->match(graph, node, predictor);
    if (matches.empty()) {
      ++node;
      continue;
    }
    MENDEL_ASSIGN_OR_RETURN(const Mutant mutant, MakeMutant(graph, *rule, matches[0], predictor));
    MENDEL_ASSIGN_OR_RETURN(graph, Replace(graph, mutant.place, mutant.mutant));
    node = mutant.place.nodes.front();
  }
  return graph;
}

/// One site after the other, until there is none; then biases, which the Transposes kept away.
absl::StatusOr<Graph> ApplyToAll(Graph graph, const Predictor& predictor) {
  for (int32_t node = 0; node < static_cast<int32_t>(graph.nodes().size());) {
    const std::vector<int32_t> nodes = NodesOfSite(graph, node);
    if (nodes.empty()) {
      ++node;
      continue;
    }
    MENDEL_ASSIGN_OR_RETURN(const Subprogram place, MakeSubprogram(graph, nodes));
    MENDEL_ASSIGN_OR_RETURN(const Graph site, Extract(graph, place));
    MENDEL_ASSIGN_OR_RETURN(const Graph moved, ApplyToSite(site));
    MENDEL_ASSIGN_OR_RETURN(graph, Replace(graph, place, moved));
    node = nodes.front();
  }
  return WithBiases(std::move(graph), predictor);
}

absl::StatusOr<Graph> Apply(const Graph& subprogram, const Match& match,
                            const Predictor& predictor) {
  return match.choices.at("all") == 1 ? ApplyToAll(subprogram, predictor) : ApplyToSite(subprogram);
}

absl::StatusOr<Graph> Sample(Rng& rng) {
  Emitter e("sample");
  const Ints last = {0, 2, 3, 1}, first = {0, 3, 1, 2};
  const ValueId x = e.Input("x", {DType::kF32, {2, 3, 4, 5}});
  const ValueId t = e.Transpose(x, last);
  const Shape shapes[] = {{3}, {1, 5, 3}, {4, 1, 1}};
  ValueId y = e.Add(t, SampleWeight(e, rng, shapes[rng.Below(3)], "b"));
  y = e.Op("Relu", {y});
  if (rng.Flip()) y = e.Add(y, rng.Flip() ? t : e.Transpose(e.Input("r", e.type(x)), last));
  if (rng.Flip()) y = e.Mul(y, e.Constant(Tensor::Scalar(DType::kF32, 0.75)));
  if (rng.Flip()) y = e.Op("Softmax", {y}, {{"axis", rng.Between(0, 3)}});
  if (rng.Flip()) {
    const ValueId mean = e.Op("ReduceMean", {y}, {{"axes", Ints{1, 2}}, {"keepdims", int64_t{1}}});
    y = rng.Flip() ? e.Mul(y, mean) : e.Op("Sub", {y, mean});
  }
  if (rng.Flip()) y = e.Concat({y, rng.Flip() ? t : y}, rng.Between(0, 3));
  if (rng.Flip()) {
    const Ints kept[] = {{0, 1, 2}, {1, 2}, {0, 3}, {2}};
    e.Output("read",
             e.Op("ReduceSum", {y}, {{"axes", kept[rng.Below(4)]}, {"keepdims", int64_t{0}}}));
  }
  y = e.Transpose(y, first);
  if (rng.Flip()) {  // a second site behind a layer
    const int64_t channels = e.shape(y)[1];
    y = e.Op("Conv", {y, SampleWeight(e, rng, {2, channels, 1, 1}, "w")},
             WindowAttributes(2, 1, 1, 0));
    y = e.Transpose(e.Op("Relu", {e.Transpose(y, last)}), first);
  }
  e.Output("y", e.Op("Softplus", {y}));
  return e.Finish();
}

Rule Make() {
  Rule rule;
  rule.name = "transposes_across";
  rule.family = "views";
  rule.before = "Transpose(f(Transpose(x, p), Transpose(y, p), w), p^-1), Reduce(Transpose(x, p))";
  rule.after = "f(x, y, Transpose(w, p^-1)), Reduce(x)";
  rule.precondition =
      "f elementwise, a Concat or along an axis, on weights and operands of one rank; fewer "
      "elements "
      "transposed";
  rule.loses_when = "the backend's fast layout is that of the Transposes";
  rule.match = &FindMatches;
  rule.apply = &Apply;
  rule.sample = &Sample;
  return rule;
}

MENDEL_REGISTER_RULE(&Make);

}  // namespace
}  // namespace mendel::rules::transposes_across
