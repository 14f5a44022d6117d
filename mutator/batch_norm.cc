#include "mutator/batch_norm.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "mutator/conv_at.h"
#include "mutator/parallel.h"

namespace mendel {

bool IsConstantBatchNorm(const Graph& graph, int32_t id) {
  const Node& norm = graph.node(id);
  return norm.op->name == "BatchNormalization" &&
         std::all_of(norm.inputs.begin() + 1, norm.inputs.end(),
                     [&](ValueId v) { return IsWeight(graph, v); });
}

ChannelAffine AffineOf(Emitter& e, const Graph& graph, int32_t id) {
  const Node& norm = graph.node(id);
  const int64_t channels = norm.outputs[0].shape[1];
  const auto filled = [&](Shape shape, double value) {
    return e.Constant(Tensor::Filled({norm.outputs[0].dtype, std::move(shape)}, value));
  };
  std::vector<ValueId> parameters;
  for (size_t k = 1; k < norm.inputs.size(); ++k)
    parameters.push_back(e.CopyConstantExpression(graph, norm.inputs[k]));
  const ValueId none = filled({channels}, 0);
  const ValueId one = filled({1, channels}, 1), zero = filled({1, channels}, 0);
  const ValueId factor =
      e.Op("BatchNormalization", {one, parameters[0], none, none, parameters[3]}, norm.attrs);
  const ValueId shift =
      e.Op("BatchNormalization", {zero, parameters[0], parameters[1], parameters[2], parameters[3]},
           norm.attrs);
  return {e.Reshape(factor, {channels}), e.Reshape(shift, {channels})};
}

bool IsFoldableConv(const Graph& graph, int32_t id) {
  const Node& conv = graph.node(id);
  return (conv.op->name == "Conv" || conv.op->name == "ConvTranspose") && graph.OnlyUser(id) >= 0 &&
         std::all_of(conv.inputs.begin() + 1, conv.inputs.end(),
                     [&](ValueId v) { return IsWeight(graph, v); });
}

ValueId ScaleOutputs(Emitter& e, const Node& conv, ValueId w, ValueId factor) {
  if (conv.op->name == "Conv") return ScaleRows(e, w, factor);
  const Shape shape = e.shape(w);  // [C, O/g, K..]
  const int64_t group = conv.attrs.Int("group");
  Shape split = {group, shape[0] / group}, factors(shape.size() + 1, 1);
  split.insert(split.end(), shape.begin() + 1, shape.end());
  factors[0] = group;
  factors[2] = shape[1];
  return e.Reshape(e.Mul(e.Reshape(w, split), e.Reshape(factor, factors)), shape);
}

ValueId FoldedConv(Emitter& e, const Graph& graph, int32_t id, ValueId x, ValueId factor,
                   const ValueId* shift) {
  const Node& conv = graph.node(id);
  std::vector<ValueId> inputs = {
      x, ScaleOutputs(e, conv, e.CopyConstantExpression(graph, conv.inputs[1]), factor)};
  if (conv.inputs.size() > 2) {
    const ValueId bias = e.Mul(e.CopyConstantExpression(graph, conv.inputs[2]), factor);
    inputs.push_back(shift == nullptr ? bias : e.Add(bias, *shift));
  } else if (shift != nullptr) {
    inputs.push_back(*shift);
  }
  return e.Op(conv.op->name, inputs, conv.attrs, conv.name);
}

}  // namespace mendel
