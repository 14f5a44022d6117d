#include "kernels/cpu/lowering/integer_weights.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "graph/evaluate.h"

namespace mendel::cpu {
namespace {

/// The elements of `value`, broadcast to `shape`.
std::vector<double> Broadcast(const HostValue& value, const Shape& shape) {
  const Shape own = RowMajorStrides(value.type.shape);
  Shape strides(shape.size(), 0);
  for (size_t d = 0; d < own.size(); ++d) {
    if (value.type.shape[d] != 1) strides[shape.size() - own.size() + d] = own[d];
  }
  std::vector<double> elements(static_cast<size_t>(NumElements(shape)));
  Shape index(shape.size(), 0);
  for (double& element : elements) {
    int64_t at = 0;
    for (size_t d = 0; d < index.size(); ++d) at += index[d] * strides[d];
    element = value.At(at);
    NextIndex(shape, index);
  }
  return elements;
}

std::vector<double> Moved(const Graph& graph, int32_t id, std::vector<double> elements) {
  const Node& node = graph.node(id);
  const HostValue operand{{DType::kF64, graph.type(node.inputs[0]).shape}, std::move(elements), {}};
  const HostValue* const operands[] = {&operand};
  const std::vector<TensorType> inputs = {operand.type};
  const std::vector<TensorType> outputs = {{DType::kF64, node.outputs[0].shape}};
  return EvaluateNode(*node.op, NodeView{inputs, node.attrs, outputs}, operands)[0].scalars;
}

/// Stored floats that are small whole numbers: the importer folds casts of small tensors.
std::optional<IntegerWeights> Wholes(std::vector<double> values) {
  const bool whole = std::all_of(values.begin(), values.end(), [](double value) {
    return value == std::rint(value) && std::abs(value) <= 255;
  });
  if (!whole) return std::nullopt;
  std::vector<double> ones(values.size(), 1.0);
  return IntegerWeights{std::move(values), std::move(ones)};
}

}  // namespace

std::optional<IntegerWeights> FindIntegerWeights(const Graph& graph, Folded& folded,
                                                 ValueId value) {
  if (!folded.IsConstant(value)) return std::nullopt;
  const Node& node = graph.node(value.node);
  const TensorType& type = graph.type(value);
  if (IsIntegral(type.dtype)) {
    const HostValue exact = folded.Exact(value);
    IntegerWeights weights;
    for (const int64_t whole : exact.integers) weights.whole.push_back(static_cast<double>(whole));
    weights.scale.assign(weights.whole.size(), 1.0);
    return weights;
  }
  if (IsConstant(node)) return Wholes(folded.Exact(value).scalars);
  if (node.op->name == "Cast") return FindIntegerWeights(graph, folded, node.inputs[0]);
  if (node.op->name == "Transpose" || node.op->name == "Reshape") {
    std::optional<IntegerWeights> weights = FindIntegerWeights(graph, folded, node.inputs[0]);
    if (!weights.has_value()) return std::nullopt;
    weights->whole = Moved(graph, value.node, std::move(weights->whole));
    weights->scale = Moved(graph, value.node, std::move(weights->scale));
    return weights;
  }
  if (node.op->name != "Mul") return std::nullopt;
  for (const size_t k : {0, 1}) {
    if (graph.type(node.inputs[k]).shape != type.shape) continue;
    std::optional<IntegerWeights> weights = FindIntegerWeights(graph, folded, node.inputs[k]);
    if (!weights.has_value()) continue;
    const std::vector<double> factors = Broadcast(folded.Exact(node.inputs[1 - k]), type.shape);
    for (size_t i = 0; i < factors.size(); ++i) weights->scale[i] *= factors[i];
    return weights;
  }
  return std::nullopt;
}

}  // namespace mendel::cpu
