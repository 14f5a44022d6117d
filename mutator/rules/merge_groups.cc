// A grouped convolution gets fewer, larger groups with block-diagonal weights.
//
//   before  Conv(x, w){group g}
//   after   Conv(x, block_diagonal(w)){group g/f}
//
// Exact where all values are finite. The arithmetic grows by the factor f, so the rule wins only
// where small groups run far below peak.

#include <algorithm>

#include "mutator/conv_chain.h"

namespace mendel::rules::merge_groups {
namespace {

constexpr int64_t kMaxChannels = 64;  // of a new group

std::vector<Match> FindMatches(const Graph& graph, int32_t node) {
  const std::vector<ConvLink> chain = ConvChainEndingAt(graph, node);
  if (chain.empty()) return {};
  const ConvShape last = ShapeOf(graph, chain.back().conv);
  const int64_t per_group = last.channels / std::max<int64_t>(1, last.group);
  Ints factors;
  for (int64_t f = 2; f <= last.group && per_group * f <= kMaxChannels; ++f) {
    if (last.group % f == 0) factors.push_back(f);
  }
  if (factors.size() > 3) factors = {factors.front(), factors[factors.size() / 2], factors.back()};
  std::vector<std::map<std::string, int64_t>> choices;
  for (int64_t f : factors) choices.push_back({{"factor", f}});
  return MatchLink(
      graph, node, [](const ConvShape& s) { return s.group > 1; }, choices);
}

absl::StatusOr<Graph> Apply(const Graph& subprogram, const Match& match) {
  const auto chain = WholeChain(subprogram);
  if (!chain.ok()) return chain.status();
  const ConvLink& link = chain->front();
  const Node& conv = subprogram.node(link.conv);
  const int64_t groups = conv.attrs.Int("group");
  const int64_t factor = match.choices.at("factor");
  Emitter e;
  const ValueId x = e.InputsOf(subprogram)[0];
  const ValueId w = e.CopyConstantExpression(subprogram, conv.inputs[1]);
  const int64_t rows = e.shape(w)[0] / groups;
  const int64_t columns = e.shape(w)[1];
  std::vector<ValueId> blocks;
  for (int64_t g = 0; g < groups; ++g) {
    const int64_t place = g % factor;
    blocks.push_back(e.PadZero(e.Slice(w, 0, g * rows, (g + 1) * rows), 1, place * columns,
                               (factor - 1 - place) * columns));
  }
  std::vector<ValueId> inputs = {x, e.Concat(blocks, 0)};
  if (conv.inputs.size() > 2)
    inputs.push_back(e.CopyConstantExpression(subprogram, conv.inputs[2]));
  Attributes attrs = conv.attrs;
  attrs.Set("group", groups / factor);
  e.Output("out0", EmitTail(e, subprogram, link, e.Op("Conv", inputs, attrs, conv.name)));
  return e.Finish();
}

absl::StatusOr<Graph> Sample(Rng& rng) {
  const int64_t group = rng.Between(2, 9), per_group = rng.Between(1, 2);
  return MakeConvSample({.input = {1, per_group * group, 5, 5},
                         .weight = {3 * group, per_group, 3, 3},
                         .strides = {1, 1},
                         .dilations = {1, 1},
                         .pads = {1, 1, 1, 1},
                         .group = group,
                         .bias = rng.Flip()});
}

Rule Make() {
  Rule rule;
  rule.name = "merge_groups";
  rule.family = "groups";
  rule.before = "Conv(x, w){group g}";
  rule.after = "Conv(x, block diagonal of w){group g/f}";
  rule.precondition =
      "f divides g; at most 64 channels a new group; the smallest f, one in the middle and the "
      "largest";
  rule.loses_when = "the library runs small groups well: f times the arithmetic is done";
  rule.match = &FindMatches;
  rule.apply = &Apply;
  rule.sample = &Sample;
  return rule;
}

MENDEL_REGISTER_RULE(&Make);

}  // namespace
}  // namespace mendel::rules::merge_groups
