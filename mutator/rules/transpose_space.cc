// A convolution is computed on the transposed image.
//
//   before  Conv(x[.., H, W], w[.., K_h, K_w])
//   after   Transpose(Conv(Transpose(x), Transpose(w)))
//
// Exact. 1xk and kx1 kernels have one fast direction. A chain of both keeps one layout, since
// adjacent transpositions cancel.

#include <algorithm>
#include <utility>

#include "mutator/conv_chain.h"

namespace mendel::rules::transpose_space {
namespace {

bool Accepts(const ConvShape& shape) {
  if (shape.windows.size() != 2) return false;
  const int64_t low = std::min(shape.windows[0].kernel, shape.windows[1].kernel);
  const int64_t high = std::max(shape.windows[0].kernel, shape.windows[1].kernel);
  return low == 1 && high > 1;
}

absl::StatusOr<Graph> Apply(const Graph& subprogram, const Match&) {
  const auto chain = WholeChain(subprogram);
  if (!chain.ok()) return chain.status();
  const ConvLink& link = chain->front();
  const Node& conv = subprogram.node(link.conv);
  const Ints swap = {0, 1, 3, 2};
  Emitter e;
  const ValueId x = e.Transpose(e.InputsOf(subprogram)[0], swap);
  std::vector<ValueId> inputs = {
      x, e.Transpose(e.CopyConstantExpression(subprogram, conv.inputs[1]), swap)};
  if (conv.inputs.size() > 2)
    inputs.push_back(e.CopyConstantExpression(subprogram, conv.inputs[2]));
  Ints strides = conv.attrs.IntList("strides"), dilations = conv.attrs.IntList("dilations"),
       pads = conv.attrs.IntList("pads");
  std::swap(strides[0], strides[1]);
  std::swap(dilations[0], dilations[1]);
  std::swap(pads[0], pads[1]);
  std::swap(pads[2], pads[3]);
  const Attributes attrs = ChangedWindows(
      subprogram, link.conv, {.strides = strides, .dilations = dilations, .pads = pads});
  e.Output(
      "out0",
      e.Transpose(EmitTail(e, subprogram, link, e.Op("Conv", inputs, attrs, conv.name)), swap));
  return e.Finish();
}

absl::StatusOr<Graph> Sample(Rng& rng) {
  const int64_t kernel = rng.Between(2, 4);
  const bool wide = rng.Flip();
  return MakeConvSample(
      {.input = {rng.Between(1, 2), 2, rng.Between(8, 9), rng.Between(8, 9)},
       .weight = {2, 2, wide ? 1 : kernel, wide ? kernel : 1},
       .strides = {rng.Between(1, 2), rng.Between(1, 2)},
       .dilations = {1, rng.Between(1, 2)},
       .pads = {rng.Between(0, 1), rng.Between(0, 1), rng.Between(0, 1), rng.Between(0, 1)},
       .bias = rng.Flip()});
}

Rule Make() {
  Rule rule;
  rule.name = "transpose_space";
  rule.family = "kernel shape";
  rule.before = "Conv(x, w[O, C, 1, k]), Conv(x, w[O, C, k, 1])";
  rule.after = "Transpose(Conv(Transpose(x), Transpose(w)))";
  rule.precondition =
      "2-D, one extent of the kernel is 1; any stride, dilation, padding and groups";
  rule.loses_when = "the transpositions cost more than the direction gains";
  rule.match = [](const Graph& graph, int32_t node) {
    return MatchLink(graph, node, Accepts, {{}});
  };
  rule.apply = &Apply;
  rule.sample = &Sample;
  return rule;
}

MENDEL_REGISTER_RULE(&Make);

}  // namespace
}  // namespace mendel::rules::transpose_space
