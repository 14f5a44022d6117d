#include "mutator/any_layout.h"

#include <algorithm>
#include <set>
#include <string_view>

#include "mutator/parallel.h"

namespace mendel {
namespace {

bool IsPositionwise(std::string_view op) {
  static const auto* ops = new std::set<std::string_view>{
      "Abs",         "Add",       "Celu",      "Clip",    "Div",      "Elu",  "Erf", "Exp", "Gelu",
      "HardSigmoid", "HardSwish", "LeakyRelu", "Max",     "Min",      "Mish", "Mul", "Neg", "PRelu",
      "Pow",         "Relu",      "Selu",      "Sigmoid", "Softplus", "Sqrt", "Sub", "Tanh"};
  return ops->count(op) > 0;
}

/// Operators with one axis, the result of which has it, too.
bool IsAlongAxis(std::string_view op) {
  return op == "Concat" || op == "Hardmax" || op == "LogSoftmax" || op == "Softmax";
}

bool IsReduction(const Node& node) {
  return node.op->name.starts_with("Reduce") && node.inputs.size() == 1 && node.attrs.Has("axes");
}

}  // namespace

bool EndsLayout(const Node& node) { return IsReduction(node) && node.attrs.Int("keepdims") == 0; }

bool WorksInAnyLayout(const Graph& graph, int32_t id) {
  const Node& node = graph.node(id);
  const bool known =
      IsPositionwise(node.op->name) || IsAlongAxis(node.op->name) || IsReduction(node);
  if (!known || node.outputs.size() != 1 || IsWeight(graph, {id, 0})) return false;
  const size_t rank =
      EndsLayout(node) ? graph.type(node.inputs[0]).shape.size() : node.outputs[0].shape.size();
  return std::all_of(node.inputs.begin(), node.inputs.end(), [&](ValueId input) {
    return IsWeight(graph, input) || graph.type(input).shape.size() == rank;
  });
}

Attributes MovedAttributes(const Node& node, const Ints& perm) {
  const auto moved = [&](int64_t axis) { return perm[static_cast<size_t>(axis)]; };
  Attributes attrs = node.attrs;
  if (IsAlongAxis(node.op->name)) attrs.Set("axis", moved(attrs.Int("axis")));
  if (!IsReduction(node)) return attrs;
  Ints axes;
  for (const int64_t axis : node.attrs.IntList("axes")) axes.push_back(moved(axis));
  std::sort(axes.begin(), axes.end());
  attrs.Set("axes", axes);
  return attrs;
}

Ints KeptOrder(const Node& reduction, const Ints& perm) {
  const Ints& axes = reduction.attrs.IntList("axes");
  Ints kept;
  for (size_t d = 0; d < perm.size(); ++d) {
    if (!std::binary_search(axes.begin(), axes.end(), static_cast<int64_t>(d)))
      kept.push_back(perm[d]);
  }
  Ints order;
  for (const int64_t axis : kept)
    order.push_back(std::count_if(kept.begin(), kept.end(), [&](int64_t k) { return k < axis; }));
  return order;
}

}  // namespace mendel
