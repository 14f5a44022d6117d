// Convolutions whose one window is the whole input become a matrix product.
//
//   before  Conv(x[N, C, K..], w[O, C, K..]){no padding, dilation 1, group 1}
//   after   Reshape(MatMul(x[N, C*K..], w[O, C*K..]^T) + bias)
//
// Exact. Classifiers and discriminators end so. The rule wins where the library's convolution is
// slow for a single output position.

#include <algorithm>

#include "mutator/conv_chain.h"

namespace mendel::rules::whole_window_conv_to_matmul {
namespace {

bool Accepts(const ConvShape& shape) {
  const auto whole = [](const Window& w) {
    return w.kernel == w.input && w.pad_begin == 0 && w.pad_end == 0 &&
           (w.dilation == 1 || w.kernel == 1);
  };
  return shape.group == 1 && !IsPointwiseConv(shape) &&
         std::all_of(shape.windows.begin(), shape.windows.end(), whole);
}

absl::StatusOr<Graph> Apply(const Graph& subprogram, const Match&, const Predictor&) {
  const auto chain = WholeChain(subprogram);
  if (!chain.ok()) return chain.status();
  const ConvLink& link = chain->front();
  const Node& conv = subprogram.node(link.conv);
  Emitter e;
  const ValueId x = e.InputsOf(subprogram)[0];
  const Shape out = conv.outputs[0].shape;
  const int64_t depth = NumElements(e.shape(x)) / out[0];
  const ValueId w =
      e.Reshape(e.CopyConstantExpression(subprogram, conv.inputs[1]), {out[1], depth});
  ValueId y = e.MatMul(e.Reshape(x, {out[0], depth}), e.Transpose(w, {1, 0}));
  if (conv.inputs.size() > 2) y = e.Add(y, e.CopyConstantExpression(subprogram, conv.inputs[2]));
  e.Output("out0", EmitTail(e, subprogram, link, e.Reshape(y, out)));
  return e.Finish();
}

absl::StatusOr<Graph> Sample(Rng& rng) {
  const int64_t height = rng.Between(2, 4), width = rng.Between(1, 4);
  return MakeConvSample({.input = {rng.Between(1, 3), 3, height, width},
                         .weight = {4, 3, height, width},
                         .strides = {rng.Between(1, 2), 1},
                         .dilations = {1, 1},
                         .pads = {0, 0, 0, 0},
                         .bias = rng.Flip(),
                         .relu = rng.Flip()});
}

Rule Make() {
  Rule rule;
  rule.name = "whole_window_conv_to_matmul";
  rule.family = "linear order";
  rule.before = "Conv(x[N, C, K..], w[O, C, K..])";
  rule.after = "Reshape(MatMul(x[N, C*K..], w[O, C*K..]^T) + bias)";
  rule.precondition = "the kernel is as large as the input, no padding, dilation 1, group 1";
  rule.loses_when = "the copy of a blocked layout costs more than the product gains";
  rule.match = [](const Graph& graph, int32_t node, const Predictor&) {
    return MatchLink(graph, node, Accepts, {{}});
  };
  rule.apply = &Apply;
  rule.sample = &Sample;
  return rule;
}

MENDEL_REGISTER_RULE(&Make);

}  // namespace
}  // namespace mendel::rules::whole_window_conv_to_matmul
