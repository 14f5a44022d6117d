// Channels or image extents are padded to a multiple that kernels like, and the result is cropped.
//
//   before  Conv(x[N, C, H, W], w[O, C, ..])
//   after   (channels) crop(Conv(pad(x)[N, C', ..], pad(w)[O', C', ..])),  C', O' multiples of m
//   after   (space)    crop(Conv(pad(x), w)) with the last extent of the result a multiple of m
//
// Exact where all values are finite.

#include <algorithm>

#include "mutator/conv_chain.h"

namespace mendel::rules::pad_sizes {
namespace {

constexpr double kMaxGrowth = 1.5;

int64_t RoundUp(int64_t value, int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

double Growth(int64_t value, int64_t multiple) {
  return static_cast<double>(RoundUp(value, multiple)) / static_cast<double>(value);
}

std::vector<Match> FindMatches(const Graph& graph, int32_t node, const Predictor&) {
  const std::vector<ConvLink> chain = ConvChainEndingAt(graph, node);
  if (chain.empty()) return {};
  const ConvShape shape = ShapeOf(graph, chain.back().conv);
  std::vector<std::map<std::string, int64_t>> choices;
  const auto channels_grow = [&](int64_t m) {
    return Growth(shape.channels, m) * Growth(shape.out_channels, m);
  };
  int64_t best = 0;
  for (int64_t m : {4, 8, 16}) {
    if (shape.group == 1 && channels_grow(m) > 1 && channels_grow(m) <= kMaxGrowth) best = m;
  }
  if (best > 0) choices.push_back({{"channels", best}});
  const int64_t last = shape.out_spatial.back();
  if (last > 8 && Growth(last, 8) > 1 && Growth(last, 8) <= kMaxGrowth)
    choices.push_back({{"space", 8}});
  return MatchLink(
      graph, node, [](const ConvShape&) { return true; }, choices);
}

absl::StatusOr<Graph> Apply(const Graph& subprogram, const Match& match, const Predictor&) {
  const auto chain = WholeChain(subprogram);
  if (!chain.ok()) return chain.status();
  const ConvLink& link = chain->front();
  const Node& conv = subprogram.node(link.conv);
  const ConvShape shape = ShapeOf(subprogram, link.conv);
  Emitter e;
  ValueId x = e.InputsOf(subprogram)[0];
  ValueId w = e.CopyConstantExpression(subprogram, conv.inputs[1]);
  std::vector<ValueId> bias;
  if (conv.inputs.size() > 2) bias.push_back(e.CopyConstantExpression(subprogram, conv.inputs[2]));
  if (match.choices.count("channels") > 0) {
    const int64_t m = match.choices.at("channels");
    const int64_t columns = RoundUp(shape.channels, m) - shape.channels,
                  rows = RoundUp(shape.out_channels, m) - shape.out_channels;
    x = e.PadZero(x, 1, 0, columns);
    w = e.PadZero(e.PadZero(w, 1, 0, columns), 0, 0, rows);
    for (ValueId& b : bias) b = e.PadZero(b, 0, 0, rows);
  } else {
    const int64_t outputs = shape.out_spatial.back();
    const int64_t extra =
        (RoundUp(outputs, match.choices.at("space")) - outputs) * shape.windows.back().stride;
    x = e.PadZero(x, static_cast<int64_t>(shape.windows.size() + 1), 0, extra);
  }
  std::vector<ValueId> inputs = {x, w};
  inputs.insert(inputs.end(), bias.begin(), bias.end());
  const ValueId y = e.Op("Conv", inputs, conv.attrs, conv.name);
  e.Output("out0", EmitTail(e, subprogram, link, e.Cut(y, Box::Whole(conv.outputs[0].shape))));
  return e.Finish();
}

absl::StatusOr<Graph> Sample(Rng& rng) {
  const int64_t channels = rng.Between(3, 8);
  return MakeConvSample({.input = {1, channels, 5, rng.Between(9, 15)},
                         .weight = {rng.Between(5, 9), channels, 3, 3},
                         .strides = {1, rng.Between(1, 2)},
                         .dilations = {1, 1},
                         .pads = {1, rng.Between(0, 1), 1, 1},
                         .bias = rng.Flip()});
}

Rule Make() {
  Rule rule;
  rule.name = "pad_sizes";
  rule.family = "odd sizes";
  rule.before = "Conv(x, w)";
  rule.after =
      "crop(Conv(pad(x), pad(w))), channels a multiple of 4, 8 or 16, or the last extent of 8";
  rule.precondition = "at most 1.5 times the arithmetic; channels: group 1";
  rule.loses_when = "the copies cost more than full vectors gain";
  rule.match = &FindMatches;
  rule.apply = &Apply;
  rule.sample = &Sample;
  return rule;
}

MENDEL_REGISTER_RULE(&Make);

}  // namespace
}  // namespace mendel::rules::pad_sizes
