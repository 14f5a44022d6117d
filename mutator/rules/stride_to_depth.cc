// Strided convolutions become space-to-depth and a dense convolution with a smaller kernel.
//
//   before  Conv(x, w[O, C/g, K..]){strides s_h, s_w, .., dilation 1}
//   after   Conv(depth(pad(x))[N, C*s_h*s_w.., M..],
//                regroup(pad(w))[O, C/g*s_h*s_w.., ceil(K/s)..]){stride 1, no padding}
//
// Exact: tap s*q + r of the window is tap q of residue r, and taps beyond K are zero. The padded
// kernel does up to (s*ceil(K/s)/K)^2 times the arithmetic.

#include <algorithm>

#include "mutator/conv_chain.h"
#include "mutator/sample.h"
#include "mutator/space.h"

namespace mendel::rules::stride_to_depth {
namespace {

bool Accepts(const ConvShape& shape) {
  if (2 + 2 * shape.windows.size() > kMaxRank) return false;
  bool strided = false;
  for (const Window& window : shape.windows) {
    if (window.dilation != 1 && window.kernel > 1) return false;
    if (window.stride > 1 && window.kernel == 1)
      return false;  // most residues would be read by zeros only
    strided = strided || window.stride > 1;
  }
  return strided;
}

absl::StatusOr<Graph> Apply(const Graph& subprogram, const Match&, const Predictor&) {
  const auto chain = WholeChain(subprogram);
  if (!chain.ok()) return chain.status();
  const ConvLink& link = chain->front();
  const ConvShape shape = ShapeOf(subprogram, link.conv);
  const Node& conv = subprogram.node(link.conv);
  const size_t rank = shape.windows.size();
  Emitter e;
  ValueId x = e.InputsOf(subprogram)[0];
  ValueId w = e.CopyConstantExpression(subprogram, conv.inputs[1]);
  Ints strides;
  for (size_t d = 0; d < rank; ++d) {
    const Window& window = shape.windows[d];
    const int64_t s = window.stride;
    const int64_t dim = static_cast<int64_t>(d + 2);
    const int64_t taps = (window.kernel + s - 1) / s;
    // Padded extent that the outputs read.
    const int64_t needed = s * (shape.out_spatial[d] - 1 + taps);
    const int64_t present = window.pad_begin + window.input;
    x = e.PadZero(x, dim, window.pad_begin, std::max<int64_t>(0, needed - present));
    x = e.Slice(x, dim, 0, needed);
    w = e.PadZero(w, dim, 0, s * taps - window.kernel);
    strides.push_back(s);
  }
  std::vector<ValueId> inputs = {SpaceToDepth(e, x, strides), SpaceToDepth(e, w, strides)};
  if (conv.inputs.size() > 2)
    inputs.push_back(e.CopyConstantExpression(subprogram, conv.inputs[2]));
  const Attributes attrs = ChangedWindows(
      subprogram, link.conv,
      {.strides = Ints(rank, 1), .dilations = Ints(rank, 1), .pads = Ints(2 * rank, 0)});
  e.Output("out0", EmitTail(e, subprogram, link, e.Op("Conv", inputs, attrs, conv.name)));
  return e.Finish();
}

absl::StatusOr<Graph> Sample(Rng& rng) {
  Emitter e("sample");
  const size_t rank = static_cast<size_t>(rng.Between(1, 3));
  const int64_t group = rng.Between(1, 2);
  Shape input = {rng.Between(1, 2), 2 * group}, weight = {2 * group, 2};
  Ints strides, pads;
  for (size_t d = 0; d < rank; ++d) {
    input.push_back(rng.Between(7, rank == 3 ? 8 : 15));
    weight.push_back(rng.Between(2, rank == 3 ? 3 : 6));
    strides.push_back(rng.Between(d == 0 ? 2 : 1, 3));
  }
  for (size_t d = 0; d < 2 * rank; ++d) pads.push_back(rng.Between(0, 1));
  std::vector<ValueId> inputs = {e.Input("x", {DType::kF32, input}),
                                 SampleWeight(e, rng, weight, "w")};
  if (rng.Flip()) inputs.push_back(SampleWeight(e, rng, {weight[0]}, "b"));
  const ValueId y =
      e.Op("Conv", inputs,
           {{"strides", strides}, {"dilations", Ints(rank, 1)}, {"pads", pads}, {"group", group}});
  e.Output("y", rng.Flip() ? e.Op("Relu", {y}) : y);
  return e.Finish();
}

Rule Make() {
  Rule rule;
  rule.name = "stride_to_depth";
  rule.family = "dilation and stride";
  rule.before = "Conv(x, w){strides s}";
  rule.after = "Conv(space_to_depth(x), rearranged w){stride 1, kernel ceil(K/s)}";
  rule.precondition =
      "dilation 1, strided windows wider than 1; any strides and groups, 1-D to 3-D";
  rule.loses_when = "the zero-padded kernel adds more arithmetic than fuller vectors save";
  rule.match = [](const Graph& graph, int32_t node, const Predictor&) {
    return MatchLink(graph, node, Accepts, {{}});
  };
  rule.apply = &Apply;
  rule.sample = &Sample;
  return rule;
}

MENDEL_REGISTER_RULE(&Make);

}  // namespace
}  // namespace mendel::rules::stride_to_depth
