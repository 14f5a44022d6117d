// Three-dimensional convolutions become sums of two-dimensional ones.
//
//   before  Conv(x[N, C, D, H, W], w[O, C/g, K_d, K_h, K_w])
//   after   sum over t of Conv2D(slices(x)[N*D', C, H, W], w[.., t, :, :])
//           slice z of term t is z*s - pad + t*d, zero outside
//   after   (rows = 1, K_h = K_w = 1)  Conv2D(x[N, C, D, H*W], w[O, C, K_d, 1]): a view, no copy
//
// Exact: a 3-D convolution is the sum over its depth taps. K_d = 1 gives a single term, the spatial
// half of a (2+1)-D convolution. The transposition is extra traffic.

#include "mutator/conv_at.h"
#include "mutator/conv_chain.h"
#include "mutator/sample.h"

namespace mendel::rules::conv3d_to_conv2d {
namespace {

constexpr int64_t kMaxTerms = 7;

bool IsPlain(const Window& window) {
  return window.kernel == 1 && window.stride == 1 && window.pad_begin == 0 && window.pad_end == 0;
}

std::vector<Match> FindMatches(const Graph& graph, int32_t node) {
  const std::vector<ConvLink> chain = ConvChainEndingAt(graph, node);
  if (chain.empty()) return {};
  const ConvShape shape = ShapeOf(graph, chain.back().conv);
  if (shape.windows.size() != 3 || IsPointwiseConv(shape)) return {};
  std::vector<std::map<std::string, int64_t>> choices;
  if (shape.windows[0].kernel <= kMaxTerms) choices.push_back({{"rows", 0}});
  if (IsPlain(shape.windows[1]) && IsPlain(shape.windows[2])) choices.push_back({{"rows", 1}});
  return MatchLink(
      graph, node, [](const ConvShape&) { return true; }, choices);
}

/// The depth-only kernel on planes made into rows.
ValueId OnRows(Emitter& e, ValueId x, ValueId w, std::optional<ValueId> bias,
               const ConvShape& shape) {
  const Shape from = e.shape(x), kernel = e.shape(w);
  const ValueId rows = e.Reshape(x, {from[0], from[1], from[2], from[3] * from[4]});
  const ValueId taps = e.Reshape(w, {kernel[0], kernel[1], kernel[2], 1});
  const ValueId y = ConvAt(
      e, rows, taps, bias,
      {ReadsOf(shape.windows[0], shape.out_spatial[0]), {0, from[3] * from[4], 1, 1}}, shape.group);
  return e.Reshape(y, {from[0], shape.out_channels, shape.out_spatial[0], from[3], from[4]});
}

/// [N, C, D, H, W] -> [N*outputs, C, H, W]: the slices that depth tap 0 of `reads` sees.
ValueId Slices(Emitter& e, ValueId x, const Reads& reads) {
  const Shape from = e.shape(x);
  const int64_t last = reads.first + (reads.outputs - 1) * reads.stride;
  const int64_t before = reads.first < 0 ? -reads.first : 0;
  x = e.PadZero(x, 2, before, last >= from[2] ? last + 1 - from[2] : 0);
  x = e.Slice(x, 2, reads.first + before, last + before + 1, reads.stride);
  return e.Reshape(e.Transpose(x, {0, 2, 1, 3, 4}),
                   {from[0] * reads.outputs, from[1], from[3], from[4]});
}

absl::StatusOr<Graph> Apply(const Graph& subprogram, const Match& match) {
  const auto chain = WholeChain(subprogram);
  if (!chain.ok()) return chain.status();
  const ConvLink& link = chain->front();
  const ConvShape shape = ShapeOf(subprogram, link.conv);
  const Node& conv = subprogram.node(link.conv);
  Emitter e;
  const ValueId x = e.InputsOf(subprogram)[0];
  const ValueId w = e.CopyConstantExpression(subprogram, conv.inputs[1]);
  std::optional<ValueId> bias;
  if (conv.inputs.size() > 2) bias = e.CopyConstantExpression(subprogram, conv.inputs[2]);
  if (match.choices.at("rows") == 1) {
    e.Output("out0", EmitTail(e, subprogram, link, OnRows(e, x, w, bias, shape)));
    return e.Finish();
  }
  const Shape kernel = e.shape(w);
  const Shape out = conv.outputs[0].shape;
  std::optional<ValueId> sum;
  for (int64_t t = 0; t < kernel[2]; ++t) {
    Reads depth = ReadsOf(shape.windows[0], out[2]);
    depth.first += t * shape.windows[0].dilation;
    const ValueId taps =
        e.Reshape(TapsOf(e, w, 0, t, t + 1), {kernel[0], kernel[1], kernel[3], kernel[4]});
    const ValueId y = ConvAt(e, Slices(e, x, depth), taps, t == 0 ? bias : std::nullopt,
                             {ReadsOf(shape.windows[1], out[3]), ReadsOf(shape.windows[2], out[4])},
                             shape.group, conv.name);
    sum = sum.has_value() ? e.Add(*sum, y) : y;
  }
  const ValueId y =
      e.Transpose(e.Reshape(*sum, {out[0], out[2], out[1], out[3], out[4]}), {0, 2, 1, 3, 4});
  e.Output("out0", EmitTail(e, subprogram, link, y));
  return e.Finish();
}

absl::StatusOr<Graph> Sample(Rng& rng) {
  const bool depth_only = rng.Flip();
  const Shape kernel = {rng.Between(depth_only ? 2 : 1, 3), depth_only ? 1 : rng.Between(2, 3),
                        depth_only ? 1 : 2};
  return MakeRegionSample(rng,
                          {.input = {rng.Between(1, 2), 2, rng.Between(4, 6), rng.Between(4, 5), 4},
                           .kernel = kernel,
                           .dilation = depth_only ? rng.Between(1, 2) : 1,
                           .first_stride = depth_only ? 1 : rng.Between(1, 2),
                           .residual = false,
                           .pool = false});
}

Rule Make() {
  Rule rule;
  rule.name = "conv3d_to_conv2d";
  rule.family = "kernel shape";
  rule.before = "Conv(x[N, C, D, H, W], w[O, C, K_d, K_h, K_w])";
  rule.after = "sum of Conv2D over depth taps; or Conv2D on [N, C, D, H*W] where K_h = K_w = 1";
  rule.precondition = "3-D, at most 7 depth taps; any stride, dilation, padding and groups";
  rule.loses_when = "the library's 3-D kernels are as good as its 2-D ones";
  rule.match = &FindMatches;
  rule.apply = &Apply;
  rule.sample = &Sample;
  return rule;
}

MENDEL_REGISTER_RULE(&Make);

}  // namespace
}  // namespace mendel::rules::conv3d_to_conv2d
