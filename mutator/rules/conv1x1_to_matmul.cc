// Pointwise convolutions become matrix products.
//
//   before  Conv(x[N, C, S..], w[O, C, 1..]){stride 1, no padding, group 1}
//   after   Reshape(MatMul(w[O, C], x[N, C, prod S]) + bias[O, 1])
//
// Exact.

#include <algorithm>

#include "mutator/conv_chain.h"

namespace mendel::rules::conv1x1_to_matmul {
namespace {

bool Accepts(const ConvShape& shape) { return shape.group == 1 && IsPointwiseConv(shape); }

absl::StatusOr<Graph> Apply(const Graph& subprogram, const Match&, const Predictor&) {
  const auto chain = WholeChain(subprogram);
  if (!chain.ok()) return chain.status();
  const ConvLink& link = chain->front();
  const Node& conv = subprogram.node(link.conv);
  Emitter e;
  const ValueId x = e.InputsOf(subprogram)[0];
  const Shape shape = e.shape(x);
  const Shape out = conv.outputs[0].shape;
  const int64_t positions = NumElements(shape) / std::max<int64_t>(1, shape[0] * shape[1]);
  const ValueId w =
      e.Reshape(e.CopyConstantExpression(subprogram, conv.inputs[1]), {out[1], shape[1]});
  ValueId y = e.MatMul(w, e.Reshape(x, {shape[0], shape[1], positions}));
  if (conv.inputs.size() > 2)
    y = e.Add(y, e.Reshape(e.CopyConstantExpression(subprogram, conv.inputs[2]), {out[1], 1}));
  e.Output("out0", EmitTail(e, subprogram, link, e.Reshape(y, out)));
  return e.Finish();
}

absl::StatusOr<Graph> Sample(Rng& rng) {
  return MakeConvSample({.input = {rng.Between(1, 3), 3, rng.Between(1, 6), rng.Between(1, 6)},
                         .weight = {4, 3, 1, 1},
                         .strides = {1, 1},
                         .dilations = {1, 1},
                         .pads = {0, 0, 0, 0},
                         .bias = rng.Flip(),
                         .relu = rng.Flip()});
}

Rule Make() {
  Rule rule;
  rule.name = "conv1x1_to_matmul";
  rule.family = "linear order";
  rule.before = "Conv(x, w[O, C, 1, 1])";
  rule.after = "Reshape(MatMul(w, Reshape(x)) + bias)";
  rule.precondition = "stride 1, no padding, group 1";
  rule.loses_when = "neighbors keep a blocked layout that the product leaves";
  rule.match = [](const Graph& graph, int32_t node, const Predictor&) {
    return MatchLink(graph, node, Accepts, {{}});
  };
  rule.apply = &Apply;
  rule.sample = &Sample;
  return rule;
}

MENDEL_REGISTER_RULE(&Make);

}  // namespace
}  // namespace mendel::rules::conv1x1_to_matmul
