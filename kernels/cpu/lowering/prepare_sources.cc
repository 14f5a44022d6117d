// Batch normalizations and ReLUs, or gates, that a pointwise product computes while it reads its
// source.

#include <algorithm>
#include <cmath>
#include <utility>

#include "kernels/cpu/kernels/pointwise.h"
#include "kernels/cpu/lowering/lower_direct.h"
#include "kernels/cpu/lowering/native_lowering.h"

namespace mendel::cpu {
namespace {

/// A product of a value and one factor for each of its images and channels.
std::optional<PreparedSource> Gated(const Graph& graph, const Group& group, ValueId value) {
  const Node& node = graph.node(value.node);
  if (group.nodes.size() != 1 || node.op->name != "Mul" || node.inputs.size() != 2)
    return std::nullopt;
  const TensorType& type = graph.type(value);
  Shape gates(type.shape.size(), 1);
  std::copy_n(type.shape.begin(), 2, gates.begin());
  for (const size_t k : {0, 1}) {
    if (graph.type(node.inputs[k]) != type || graph.type(node.inputs[1 - k]).shape != gates)
      continue;
    PreparedSource prepared;
    prepared.source = node.inputs[k];
    prepared.gate = node.inputs[1 - k];
    prepared.nodes = group.nodes;
    return prepared;
  }
  return std::nullopt;
}

/// Finds the batch normalization and ReLU, one or both, that compute `value`; nullopt when
/// something else does.
std::optional<PreparedSource> Normalized(Lowering& lowering, const Group& group, ValueId value) {
  const Graph& graph = lowering.graph();
  PreparedSource prepared;
  const Node* node = &graph.node(value.node);
  prepared.nodes = group.nodes;
  if (node->op->name == "Relu") {
    prepared.relu = true;
    value = node->inputs[0];
    node = &graph.node(value.node);
  }
  const int64_t channels = graph.type(value).shape[1];
  prepared.factor.assign(static_cast<size_t>(channels), 1.0);
  prepared.summand.assign(static_cast<size_t>(channels), 0.0);
  prepared.source = value;
  if (group.nodes.size() == (prepared.relu ? 1 : 0)) return prepared;
  if (group.nodes.size() != (prepared.relu ? 2 : 1) || node->op->name != "BatchNormalization")
    return std::nullopt;
  std::vector<double> of[4];
  for (size_t k = 0; k < 4; ++k) {
    if (!lowering.folded().IsConstant(node->inputs[k + 1])) return std::nullopt;
    of[k] = lowering.folded().Exact(node->inputs[k + 1]).scalars;
  }
  for (size_t c = 0; c < prepared.factor.size(); ++c) {
    prepared.factor[c] = of[0][c] / std::sqrt(of[3][c] + node->attrs.Float("epsilon"));
    prepared.summand[c] = of[1][c] - of[2][c] * prepared.factor[c];
  }
  prepared.source = node->inputs[0];
  return prepared;
}

}  // namespace

void PrepareSources(Lowering& lowering, const std::set<int32_t>& taken,
                    std::vector<std::optional<Group>>& groups) {
  const Graph& graph = lowering.graph();
  for (std::optional<Group>& group : groups) {
    if (!group.has_value() || !group->contraction) continue;
    const int32_t root = group->nodes[0];
    if (taken.count(root) != 0) continue;
    const auto named = lowering.options().algorithms.find(root);
    if (named == lowering.options().algorithms.end() || named->second != kNativePointwise) continue;
    const ValueId input = graph.node(root).inputs[0];
    std::optional<Group>& maker = groups[static_cast<size_t>(input.node)];
    const bool alone = maker.has_value() && !maker->contraction && graph.OnlyUser(input.node) >= 0;
    if (!alone || graph.node(root).op->name != "Conv" || DirectAlgorithms(graph, root).empty())
      continue;
    if (!NativeFuse(lowering, *group, graph.node(root).outputs[0].shape[1]).has_value()) continue;
    group->prepared = Gated(graph, *maker, input);
    if (!group->prepared.has_value()) group->prepared = Normalized(lowering, *maker, input);
    if (group->prepared.has_value()) maker.reset();  // its nodes are then computed with the product
  }
}

}  // namespace mendel::cpu
