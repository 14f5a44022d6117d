// One image cut into stripes with the rows their windows need from the neighbours: space_to_batch made exact (prevention).
//
//   before  Conv(x[N, C, H, W], w){keeps space}
//   after   stack(Conv(concat_i(rows [i*H/k - before, (i+1)*H/k + after) of pad(x)), w){no padding along H})
//   exact. loses when copying the halo costs more than the batch gains.

#include "mutator/conv_chain.h"
#include "mutator/space.h"

namespace mendel {
namespace {

std::vector<Match> FindMatches(const Graph& graph, int32_t node) {
  const std::vector<ConvLink> chain = ConvChainEndingAt(graph, node);
  if (chain.empty()) return {};
  const ConvShape last = ShapeOf(graph, chain.back().conv);
  std::vector<std::map<std::string, int64_t>> choices;
  for (int64_t k : {2, 4}) {
    const Window& rows = last.windows[0];
    if (rows.input % k == 0 && rows.kernel > 1 && rows.input / k > 4 * (rows.kernel - 1) * rows.dilation)
      choices.push_back({{"factor", k}});
  }
  return MatchChains(graph, node, 1, KeepsSpace, choices);
}

absl::StatusOr<Graph> Apply(const Graph& subprogram, const Match& match) {
  const auto chain = WholeChain(subprogram);
  if (!chain.ok()) return chain.status();
  const ConvLink& link = chain->front();
  const ConvShape shape = ShapeOf(subprogram, link.conv);
  const Window& rows = shape.windows[0];
  const int64_t factor = match.choices.at("factor");
  const int64_t stripe = rows.input / factor;
  Emitter e;
  const ValueId x = e.PadZero(e.InputsOf(subprogram)[0], 2, rows.pad_begin, rows.pad_end);
  std::vector<ValueId> stripes;
  for (int64_t i = 0; i < factor; ++i)
    stripes.push_back(e.Slice(x, 2, i * stripe, (i + 1) * stripe + rows.pad_begin + rows.pad_end));
  Ints pads = subprogram.node(link.conv).attrs.IntList("pads");
  pads[0] = 0;
  pads[shape.windows.size()] = 0;
  const ValueId y = EmitLink(e, subprogram, link, e.Concat(stripes, 0),
                             ChangedWindows(subprogram, link.conv, {.strides = {}, .dilations = {}, .pads = pads}));
  std::vector<ValueId> parts;
  for (int64_t i = 0; i < factor; ++i) parts.push_back(e.Slice(y, 0, i * shape.batch, (i + 1) * shape.batch));
  e.Output("out0", e.Concat(parts, 2));
  return e.Finish();
}

absl::StatusOr<Graph> Sample(Rng& rng) {
  return MakeConvSample({.input = {rng.Between(1, 2), 2, 18 + 2 * rng.Between(0, 3), rng.Between(3, 6)},
                         .weight = {2, 2, 3, 3},
                         .strides = {1, 1},
                         .dilations = {1, 1},
                         .pads = {1, 1, 1, 1},
                         .bias = rng.Flip()});
}

Rule Make() {
  Rule rule;
  rule.name = "space_to_batch_halo";
  rule.before = "Conv(x[N, C, H, W], w)";
  rule.after = "concat of k stripes in the batch with halo, Conv without padding along H, concat back";
  rule.precondition = "stride 1, space kept, k divides H, stripes much higher than the window";
  rule.loses_when = "copying the halo costs more than the batch gains";
  rule.match = &FindMatches;
  rule.apply = &Apply;
  rule.sample = &Sample;
  return rule;
}

MENDEL_REGISTER_RULE(&Make);

}  // namespace
}  // namespace mendel
