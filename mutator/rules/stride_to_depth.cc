// Strided convolutions without stride: space-to-depth and a kernel smaller by the stride.
//
//   before  Conv(x, w[O, C, K...]){stride s in every dimension, dilation 1, group 1}
//   after   Conv(depth(pad(x))[N, C*s*s.., M..], regroup(pad(w))[O, C*s*s.., ceil(K/s)..]){stride 1, no padding}
//   exact: tap s*q + r of the window is tap q of residue r; taps beyond K are zero.
//   loses when the few input channels were no problem: the padded kernel does up to (s*ceil(K/s)/K)^2 times the arithmetic.

#include <algorithm>

#include "mutator/conv_chain.h"

namespace mendel {
namespace {

bool Accepts(const ConvShape& shape) {
  if (shape.group != 1 || shape.windows.size() > 2) return false;
  for (const Window& window : shape.windows) {
    if (window.stride < 2 || window.stride != shape.windows[0].stride || window.dilation != 1 || window.kernel < 2) return false;
  }
  return true;
}

/// [A, B, M0*s, M1*s..] -> [A, B*s*s.., M0, M1..] with the residues in row-major order behind B.
ValueId SpaceToDepth(Emitter& e, ValueId x, int64_t s) {
  const Shape shape = e.shape(x);
  Shape split = {shape[0], shape[1]};
  Shape merged = {shape[0], shape[1]};
  Ints perm = {0, 1};
  for (size_t d = 2; d < shape.size(); ++d) {
    split.insert(split.end(), {shape[d] / s, s});
    merged[1] *= s;
    merged.push_back(shape[d] / s);
    perm.push_back(static_cast<int64_t>(2 * d - 1));
  }
  for (size_t d = 2; d < shape.size(); ++d) perm.push_back(static_cast<int64_t>(2 * d - 2));
  return e.Reshape(e.Transpose(e.Reshape(x, split), perm), merged);
}

absl::StatusOr<Graph> Apply(const Graph& subprogram, const Match&) {
  const auto chain = WholeChain(subprogram);
  if (!chain.ok()) return chain.status();
  const ConvLink& link = chain->front();
  const ConvShape shape = ShapeOf(subprogram, link.conv);
  const Node& conv = subprogram.node(link.conv);
  const size_t rank = shape.windows.size();
  const int64_t s = shape.windows[0].stride;
  Emitter e;
  ValueId x = e.InputsOf(subprogram)[0];
  ValueId w = e.CopyConstantExpression(subprogram, conv.inputs[1]);
  for (size_t d = 0; d < rank; ++d) {
    const Window& window = shape.windows[d];
    const int64_t dim = static_cast<int64_t>(d + 2);
    const int64_t taps = (window.kernel + s - 1) / s;
    const int64_t needed = s * (shape.out_spatial[d] - 1 + taps);  // padded extent that the outputs read
    const int64_t present = window.pad_begin + window.input;
    x = e.PadZero(x, dim, window.pad_begin, std::max<int64_t>(0, needed - present));
    x = e.Slice(x, dim, 0, needed);
    w = e.PadZero(w, dim, 0, s * taps - window.kernel);
  }
  std::vector<ValueId> inputs = {SpaceToDepth(e, x, s), SpaceToDepth(e, w, s)};
  if (conv.inputs.size() > 2) inputs.push_back(e.CopyConstantExpression(subprogram, conv.inputs[2]));
  const Attributes attrs =
      ChangedWindows(subprogram, link.conv, {.strides = Ints(rank, 1), .dilations = {}, .pads = Ints(2 * rank, 0)});
  e.Output("out0", EmitTail(e, subprogram, link, e.Op("Conv", inputs, attrs, conv.name)));
  return e.Finish();
}

absl::StatusOr<Graph> Sample(Rng& rng) {
  const int64_t s = rng.Between(2, 3);
  const int64_t kernel = rng.Between(2, 7);
  return MakeConvSample({.input = {rng.Between(1, 2), 3, rng.Between(8, 15), rng.Between(8, 15)},
                         .weight = {4, 3, kernel, kernel},
                         .strides = {s, s},
                         .dilations = {1, 1},
                         .pads = {rng.Between(0, 1), rng.Between(0, 1), rng.Between(0, 1), rng.Between(0, 1)},
                         .bias = rng.Flip()});
}

Rule Make() {
  Rule rule;
  rule.name = "stride_to_depth";
  rule.before = "Conv(x, w){stride s}";
  rule.after = "Conv(space_to_depth(x), rearranged w){stride 1, kernel ceil(K/s)}";
  rule.precondition = "equal strides of at least 2, dilation 1, group 1, 1-D or 2-D";
  rule.loses_when = "the zero-padded kernel adds more arithmetic than fuller vectors save";
  rule.match = [](const Graph& graph, int32_t node) { return MatchChains(graph, node, 1, Accepts, {{}}); };
  rule.apply = &Apply;
  rule.sample = &Sample;
  return rule;
}

MENDEL_REGISTER_RULE(&Make);

}  // namespace
}  // namespace mendel
