#include "mutator/twin_chains.h"

#include <algorithm>
#include <functional>
#include <set>
#include <string_view>

#include "base/work.h"
#include "mutator/parallel.h"

namespace mendel {
namespace {

/// The condition under which an operator leaves dimension 0 as it is.
enum class BatchRule { kAlways, kReshape, kPerm, kAxis, kAxes, kFirstBox, kPads, kMatMul };

const BatchRule* FindBatchRule(std::string_view op) {
  static const auto* rules =
      new std::map<std::string_view, BatchRule>{{"Abs", BatchRule::kAlways},
                                                {"Add", BatchRule::kAlways},
                                                {"AveragePool", BatchRule::kAlways},
                                                {"BatchNormalization", BatchRule::kAlways},
                                                {"Celu", BatchRule::kAlways},
                                                {"Clip", BatchRule::kAlways},
                                                {"Concat", BatchRule::kAxis},
                                                {"Conv", BatchRule::kAlways},
                                                {"ConvTranspose", BatchRule::kAlways},
                                                {"Div", BatchRule::kAlways},
                                                {"Elu", BatchRule::kAlways},
                                                {"Erf", BatchRule::kAlways},
                                                {"Exp", BatchRule::kAlways},
                                                {"Gelu", BatchRule::kAlways},
                                                {"HardSigmoid", BatchRule::kAlways},
                                                {"HardSwish", BatchRule::kAlways},
                                                {"LayerNormalization", BatchRule::kAxis},
                                                {"LeakyRelu", BatchRule::kAlways},
                                                {"LogSoftmax", BatchRule::kAxis},
                                                {"MatMul", BatchRule::kMatMul},
                                                {"MaxPool", BatchRule::kAlways},
                                                {"Mish", BatchRule::kAlways},
                                                {"Mul", BatchRule::kAlways},
                                                {"Neg", BatchRule::kAlways},
                                                {"PRelu", BatchRule::kAlways},
                                                {"Pad", BatchRule::kPads},
                                                {"ReduceMax", BatchRule::kAxes},
                                                {"ReduceMean", BatchRule::kAxes},
                                                {"ReduceSum", BatchRule::kAxes},
                                                {"Relu", BatchRule::kAlways},
                                                {"Reshape", BatchRule::kReshape},
                                                {"Selu", BatchRule::kAlways},
                                                {"Sigmoid", BatchRule::kAlways},
                                                {"Slice", BatchRule::kFirstBox},
                                                {"Softmax", BatchRule::kAxis},
                                                {"Softplus", BatchRule::kAlways},
                                                {"Sqrt", BatchRule::kAlways},
                                                {"Sub", BatchRule::kAlways},
                                                {"Tanh", BatchRule::kAlways},
                                                {"Transpose", BatchRule::kPerm}};
  const auto entry = rules->find(op);
  return entry == rules->end() ? nullptr : &entry->second;
}

bool HasProduct(const Node& node) {
  return node.op->name == "Conv" || node.op->name == "ConvTranspose" || node.op->name == "MatMul";
}

/// A weight operand that is the same for every row of dimension 0 of a result of `rank` dimensions.
bool SpansBatch(const Shape& shape, size_t rank) { return shape.size() >= rank && shape[0] != 1; }

/// Operands that move keep dimension 0; weights are the same for all rows.
bool OperandsFit(const Graph& graph, const Node& node) {
  const Shape& result = node.outputs[0].shape;
  const bool broadcasts = node.op->name == "Add" || node.op->name == "Sub" ||
                          node.op->name == "Mul" || node.op->name == "Div" ||
                          node.op->name == "PRelu";
  for (size_t k = 0; k < node.inputs.size(); ++k) {
    const Shape& shape = graph.type(node.inputs[k]).shape;
    if (IsWeight(graph, node.inputs[k])) {
      if (k == 0 && !broadcasts) return false;
      if (broadcasts && SpansBatch(shape, result.size())) return false;
      continue;
    }
    if (shape.empty() || shape[0] != result[0]) return false;
    if (broadcasts && shape.size() != result.size()) return false;
    if (!broadcasts && k > 0 && node.op->name != "Concat") return false;
  }
  return true;
}

bool Alike(const Graph& graph, int32_t first, int32_t second) {
  const Node &a = graph.node(first), &b = graph.node(second);
  return first != second && a.op == b.op && a.attrs == b.attrs && a.outputs == b.outputs &&
         a.inputs.size() == b.inputs.size();
}

/// Weights are the same, what moves has the same type.
bool OperandsAlike(const Graph& graph, int32_t first, int32_t second) {
  const Node &a = graph.node(first), &b = graph.node(second);
  for (size_t k = 0; k < a.inputs.size(); ++k) {
    if (a.inputs[k] == b.inputs[k]) continue;
    if (IsWeight(graph, a.inputs[k]) || IsWeight(graph, b.inputs[k]) ||
        graph.type(a.inputs[k]) != graph.type(b.inputs[k]))
      return false;
  }
  return true;
}

bool IsTwin(const Graph& graph, int32_t first, int32_t second) {
  return Alike(graph, first, second) && IsIndependentOfBatch(graph, first) &&
         OperandsAlike(graph, first, second);
}

/// Work at one node is bounded: its nearest partners, readers of one value, nodes between two
/// twins.
constexpr size_t kMostPartners = 8, kMostReaders = 64, kMostBetween = 4096;

/// True as well where the answer would take a look at too many nodes.
bool DependsOn(const Graph& graph, const std::set<int32_t>& nodes, const std::set<int32_t>& on) {
  const int32_t lowest = *on.begin();
  std::vector<int32_t> open(nodes.begin(), nodes.end());
  std::set<int32_t> seen = nodes;
  while (!open.empty()) {
    const int32_t id = open.back();
    open.pop_back();
    CountWork();
    if (seen.size() > nodes.size() + kMostBetween) return true;
    for (const ValueId input : graph.node(id).inputs) {
      if (on.count(input.node) > 0) return true;
      if (input.node > lowest && seen.insert(input.node).second) open.push_back(input.node);
    }
  }
  return false;
}

bool ReadInside(const Graph& graph, int32_t node, const std::set<int32_t>& nodes) {
  const std::vector<int32_t>& users = graph.users(node);
  return !graph.IsOutput(node) && std::all_of(users.begin(), users.end(),
                                              [&](int32_t user) { return nodes.count(user) > 0; });
}

}  // namespace

bool IsIndependentOfBatch(const Graph& graph, int32_t id) {
  const Node& node = graph.node(id);
  const BatchRule* rule = FindBatchRule(node.op->name);
  if (rule == nullptr || node.outputs.size() != 1 || node.inputs.empty() ||
      node.outputs[0].shape.empty() || !OperandsFit(graph, node))
    return false;
  const Shape& x = graph.type(node.inputs[0]).shape;
  const int64_t rank = static_cast<int64_t>(x.size());
  switch (*rule) {
    case BatchRule::kAlways:
    case BatchRule::kReshape:  // OperandsFit compares dimension 0
      return true;
    case BatchRule::kPerm:
      return node.attrs.IntList("perm")[0] == 0;
    case BatchRule::kAxis: {
      const int64_t axis = node.attrs.Int("axis");
      return axis != 0 && axis != -rank;
    }
    case BatchRule::kAxes: {
      const Ints& axes = node.attrs.IntList("axes");
      return !axes.empty() && std::find(axes.begin(), axes.end(), 0) == axes.end();
    }
    case BatchRule::kFirstBox:
      return node.attrs.IntList("starts")[0] == 0 && node.attrs.IntList("steps")[0] == 1 &&
             node.attrs.IntList("ends")[0] == x[0];
    case BatchRule::kPads: {
      const Ints& pads = node.attrs.IntList("pads");
      return pads[0] == 0 && pads[x.size()] == 0;
    }
    case BatchRule::kMatMul:
      return rank >= 2 && graph.type(node.inputs[1]).shape.size() == 2 &&
             IsWeight(graph, node.inputs[1]);
  }
  return false;
}

std::optional<TwinChains> TwinsEndingAt(const Graph& graph, int32_t first, int32_t second,
                                        size_t max_pairs) {
  if (!IsTwin(graph, first, second)) return std::nullopt;
  TwinChains twins;
  std::set<int32_t> ours, theirs;
  std::set<std::pair<ValueId, ValueId>> seen;
  // The highest node first: all that reads a node is decided before it.
  std::map<int32_t, int32_t, std::greater<>> open = {{first, second}};
  std::vector<std::pair<ValueId, ValueId>> values;
  while (!open.empty()) {
    CountWork();
    const auto [a, b] = *open.begin();
    open.erase(open.begin());
    const bool end = a == first;
    const bool inside = end || (ReadInside(graph, a, ours) && ReadInside(graph, b, theirs));
    const bool taken = !inside || twins.pairs.size() >= max_pairs || theirs.count(a) > 0 ||
                       ours.count(b) > 0 || theirs.count(b) > 0 || !IsTwin(graph, a, b);
    if (taken) {
      if (end) return std::nullopt;
      continue;  // its values stay inputs
    }
    twins.pairs.emplace(a, b);
    ours.insert(a);
    theirs.insert(b);
    if (HasProduct(graph.node(a))) ++twins.products;
    for (size_t k = 0; k < graph.node(a).inputs.size(); ++k) {
      const ValueId va = graph.node(a).inputs[k], vb = graph.node(b).inputs[k];
      if (IsWeight(graph, va) || !seen.insert({va, vb}).second) continue;
      values.emplace_back(va, vb);
      if (va != vb && Alike(graph, va.node, vb.node)) open.emplace(va.node, vb.node);
    }
  }
  for (const auto& [va, vb] : values) {
    const auto pair = twins.pairs.find(va.node);
    if (pair != twins.pairs.end() && pair->second == vb.node) continue;
    if (ours.count(va.node) + theirs.count(va.node) + ours.count(vb.node) + theirs.count(vb.node) >
        0)
      return std::nullopt;
    twins.inputs.emplace_back(va, vb);
  }
  if (DependsOn(graph, ours, theirs) || DependsOn(graph, theirs, ours)) return std::nullopt;
  return twins;
}

std::vector<int32_t> PartnersOf(const Graph& graph, int32_t node, int depth) {
  std::vector<int32_t> found;
  const auto add = [&](const std::vector<int32_t>& candidates) {
    const auto end = std::lower_bound(candidates.begin(), candidates.end(), node);
    const auto begin = end - std::min<std::ptrdiff_t>(kMostReaders, end - candidates.begin());
    for (auto it = end; it != begin && found.size() < kMostPartners;) {
      CountWork();
      const int32_t candidate = *--it;
      if (IsTwin(graph, candidate, node) &&
          std::find(found.begin(), found.end(), candidate) == found.end())
        found.push_back(candidate);
    }
  };
  for (const ValueId input : graph.node(node).inputs) {
    if (IsWeight(graph, input)) {
      if (HasProduct(graph.node(node))) add(graph.users(input.node));
    } else if (depth > 0 && !IsInput(graph.node(input.node))) {
      for (const int32_t producer : PartnersOf(graph, input.node, depth - 1))
        add(graph.users(producer));
    }
  }
  return found;
}

ValueId EmitStacked(Emitter& e, const Graph& graph, const TwinChains& twins, int32_t first,
                    const std::vector<ValueId>& inputs) {
  std::map<std::pair<ValueId, ValueId>, ValueId> stacked;
  for (const auto& [a, b] : twins.inputs) {
    stacked[{a, b}] = e.Concat({OperandOf(e, graph, a, inputs), OperandOf(e, graph, b, inputs)}, 0);
  }
  for (const auto& [a, b] : twins.pairs) {
    const Node& node = graph.node(a);
    const Node& twin = graph.node(b);
    std::vector<ValueId> operands;
    for (size_t k = 0; k < node.inputs.size(); ++k) {
      operands.push_back(IsWeight(graph, node.inputs[k])
                             ? e.CopyConstantExpression(graph, node.inputs[k])
                             : stacked.at({node.inputs[k], twin.inputs[k]}));
    }
    Attributes attrs = node.attrs;
    if (node.op->name == "Reshape") {
      Shape shape = node.outputs[0].shape;
      shape[0] *= 2;
      attrs.Set("shape", shape);
    }
    if (node.op->name == "Slice") {
      Ints ends = node.attrs.IntList("ends");
      ends[0] *= 2;
      attrs.Set("ends", ends);
    }
    stacked[{{a, 0}, {b, 0}}] = e.Op(node.op->name, operands, attrs, node.name);
  }
  return stacked.at({{first, 0}, {twins.pairs.at(first), 0}});
}

}  // namespace mendel
