// Elementwise operators are computed in the layout of their operands, without the Transposes around
// them.
//
//   before  Transpose(f(Transpose(x, p), Transpose(y, p), w), p^-1)    channels-last exports
//   after   f(x, y, Transpose(w, p^-1))
//
// Exact: f computes every position by itself. All connected elementwise operators change together.
// What is read or given in the old layout is transposed there; only mutants that transpose fewer
// elements are offered.

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "graph/emitter.h"
#include "graph/rewrite.h"
#include "mutator/parallel.h"
#include "mutator/rule.h"
#include "mutator/sample.h"

namespace mendel::rules::transposes_across {
namespace {

constexpr size_t kMostNodes = 128;

bool IsPositionwise(std::string_view op) {
  static const auto* ops = new std::set<std::string_view>{
      "Abs",         "Add",       "Celu",      "Clip",    "Div",      "Elu",  "Erf", "Exp", "Gelu",
      "HardSigmoid", "HardSwish", "LeakyRelu", "Max",     "Min",      "Mish", "Mul", "Neg", "PRelu",
      "Pow",         "Relu",      "Selu",      "Sigmoid", "Softplus", "Sqrt", "Sub", "Tanh"};
  return ops->count(op) > 0;
}

/// An elementwise operator whose operands are weights or have the shape of the result.
bool IsMember(const Graph& graph, int32_t id) {
  const Node& node = graph.node(id);
  if (!IsPositionwise(node.op->name) || node.outputs.size() != 1 || IsWeight(graph, {id, 0}))
    return false;
  return std::all_of(node.inputs.begin(), node.inputs.end(), [&](ValueId input) {
    return IsWeight(graph, input) || graph.type(input).shape == node.outputs[0].shape;
  });
}

/// All members that are connected with `node`, ascending; empty when there are too many.
std::vector<int32_t> Component(const Graph& graph, int32_t node) {
  std::set<int32_t> members = {node};
  std::vector<int32_t> open = {node};
  while (!open.empty() && members.size() <= kMostNodes) {
    const int32_t id = open.back();
    open.pop_back();
    std::vector<int32_t> neighbors = graph.users(id);
    for (const ValueId input : graph.node(id).inputs) neighbors.push_back(input.node);
    for (const int32_t neighbor : neighbors) {
      if (IsMember(graph, neighbor) && members.insert(neighbor).second) open.push_back(neighbor);
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
    const double elements = static_cast<double>(NumElements(graph.node(id).outputs[0]));
    bool read = graph.IsOutput(id);
    for (const int32_t user : graph.users(id)) {
      if (inside.count(user) > 0) continue;
      if (IsTranspose(graph, user, inverse)) {
        if (site.behind.insert(user).second) site.gain += elements;
      } else {
        read = true;
      }
    }
    if (read) site.gain -= elements;
    for (const ValueId input : graph.node(id).inputs) {
      if (IsWeight(graph, input) || inside.count(input.node) > 0 || !given.insert(input).second)
        continue;
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

std::vector<Match> FindMatches(const Graph& graph, int32_t node) {
  // The last of all nodes of a site: a member, or a Transpose behind one.
  int32_t member = node;
  if (graph.node(node).op->name == "Transpose") member = graph.node(node).inputs[0].node;
  if (!IsMember(graph, member)) return {};
  const std::vector<int32_t> members = Component(graph, member);
  if (members.empty()) return {};
  const std::optional<Site> site = SiteEndingAt(graph, members);
  if (!site.has_value()) return {};
  std::vector<int32_t> nodes = members;
  nodes.insert(nodes.end(), site->before.begin(), site->before.end());
  nodes.insert(nodes.end(), site->behind.begin(), site->behind.end());
  std::sort(nodes.begin(), nodes.end());
  if (nodes.back() != node || !MakeSubprogram(graph, nodes).ok()) return {};
  return {{nodes, {}}};
}

/// A weight in the layout of the operands, broadcast as before.
ValueId TransposedWeight(Emitter& e, const Graph& graph, ValueId weight, const Ints& inverse) {
  const ValueId value = e.CopyConstantExpression(graph, weight);
  Shape shape = e.shape(value);
  if (NumElements(shape) == 1) return value;
  shape.insert(shape.begin(), inverse.size() - shape.size(), 1);
  return e.Transpose(e.Reshape(value, shape), inverse);
}

absl::StatusOr<Graph> Apply(const Graph& subprogram, const Match&) {
  std::vector<int32_t> members;
  for (int32_t id = 0; id < static_cast<int32_t>(subprogram.nodes().size()); ++id) {
    if (IsMember(subprogram, id)) members.push_back(id);
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
    moved[{id, 0}] = e.Op(node.op->name, operands, node.attrs, node.name);
  }
  for (const GraphOutput& output : subprogram.outputs()) {
    const int32_t id = output.value.node;
    if (site->behind.count(id) > 0) {
      e.Output(output.name, moved.at(subprogram.node(id).inputs[0]));
    } else if (site->before.count(id) > 0) {
      e.Output(
          output.name,
          e.Transpose(OperandOf(e, subprogram, subprogram.node(id).inputs[0], inputs), site->perm));
    } else {
      e.Output(output.name, e.Transpose(moved.at(output.value), site->perm));
    }
  }
  return e.Finish();
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
  if (rng.Flip()) e.Output("read", e.Op("ReduceSum", {y}, {{"axes", Ints{0, 1, 2}}}));
  e.Output("y", e.Op("Softplus", {e.Transpose(y, first)}));
  return e.Finish();
}

Rule Make() {
  Rule rule;
  rule.name = "transposes_across";
  rule.family = "views";
  rule.before = "Transpose(f(Transpose(x, p), Transpose(y, p), w), p^-1)";
  rule.after = "f(x, y, Transpose(w, p^-1))";
  rule.precondition = "f elementwise, operands of one shape or weights; fewer elements transposed";
  rule.loses_when = "the backend's fast layout is that of the Transposes";
  rule.match = &FindMatches;
  rule.apply = &Apply;
  rule.sample = &Sample;
  return rule;
}

MENDEL_REGISTER_RULE(&Make);

}  // namespace
}  // namespace mendel::rules::transposes_across
