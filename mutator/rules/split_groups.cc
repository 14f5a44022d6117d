// A grouped convolution becomes several of fewer groups.
//
//   before  Conv(x, w, b){group g}
//   after   Concat over h parts of Conv(channels of x, rows of w, rows of b){group g/h}
//           h a divisor of g
//
// Exact.

#include <algorithm>

#include "mutator/conv_chain.h"

namespace mendel::rules::split_groups {
namespace {

constexpr int64_t kMaxParts = 32;

std::vector<Match> FindMatches(const Graph& graph, int32_t node, const Predictor&) {
  const std::vector<ConvLink> chain = ConvChainEndingAt(graph, node);
  if (chain.empty()) return {};
  const ConvShape shape = ShapeOf(graph, chain.back().conv);
  if (shape.channels == shape.group) return {};  // depthwise: every part would be one channel
  std::vector<std::map<std::string, int64_t>> choices;
  Ints divisors;
  for (int64_t parts = 2; parts <= std::min(shape.group, kMaxParts); ++parts) {
    if (shape.group % parts == 0) divisors.push_back(parts);
  }
  if (divisors.size() > 3)
    divisors = {divisors.front(), divisors[divisors.size() / 2], divisors.back()};
  for (int64_t parts : divisors) choices.push_back({{"parts", parts}});
  return MatchLink(
      graph, node, [](const ConvShape&) { return true; }, choices);
}

absl::StatusOr<Graph> Apply(const Graph& subprogram, const Match& match, const Predictor&) {
  const auto chain = WholeChain(subprogram);
  if (!chain.ok()) return chain.status();
  const ConvLink& link = chain->front();
  const Node& conv = subprogram.node(link.conv);
  const int64_t parts = match.choices.at("parts");
  Emitter e;
  const ValueId x = e.InputsOf(subprogram)[0];
  const ValueId w = e.CopyConstantExpression(subprogram, conv.inputs[1]);
  Attributes attrs = conv.attrs;
  attrs.Set("group", conv.attrs.Int("group") / parts);
  const int64_t columns = e.shape(x)[1] / parts, rows = e.shape(w)[0] / parts;
  std::vector<ValueId> results;
  for (int64_t k = 0; k < parts; ++k) {
    std::vector<ValueId> inputs = {e.Slice(x, 1, k * columns, (k + 1) * columns),
                                   e.Slice(w, 0, k * rows, (k + 1) * rows)};
    if (conv.inputs.size() > 2)
      inputs.push_back(e.Slice(e.CopyConstantExpression(subprogram, conv.inputs[2]), 0, k * rows,
                               (k + 1) * rows));
    results.push_back(e.Op("Conv", inputs, attrs, conv.name));
  }
  e.Output("out0", EmitTail(e, subprogram, link, e.Concat(results, 1)));
  return e.Finish();
}

absl::StatusOr<Graph> Sample(Rng& rng) {
  const int64_t group = rng.Between(2, 6);
  return MakeConvSample({.input = {rng.Between(1, 2), 2 * group, 5, 5},
                         .weight = {group * rng.Between(1, 2), 2, 3, 3},
                         .strides = {1, 2},
                         .dilations = {1, 1},
                         .pads = {1, 1, 1, 1},
                         .group = group,
                         .bias = rng.Flip()});
}

Rule Make() {
  Rule rule;
  rule.name = "split_groups";
  rule.family = "groups";
  rule.before = "Conv(x, w){group g}";
  rule.after = "Concat of h Conv(channels of x, rows of w){group g/h}";
  rule.precondition =
      "h up to 32 divides g; not depthwise; the smallest h, one in the middle and the largest";
  rule.loses_when = "slicing and concatenating channels costs more than dense kernels gain";
  rule.match = &FindMatches;
  rule.apply = &Apply;
  rule.sample = &Sample;
  return rule;
}

MENDEL_REGISTER_RULE(&Make);

}  // namespace
}  // namespace mendel::rules::split_groups
