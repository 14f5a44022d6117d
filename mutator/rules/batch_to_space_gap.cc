// Images of a batch tiled into larger ones with a zero gap between them: batch_to_space made exact (prevention).
//
//   before  Conv(x[N, C, H, W], w){keeps space}
//   after   crop(unstack(Conv(stack(pad(x))[N/k, C, k*(H+g), W], w))),  g = reach of the window along H
//   exact: a window that crosses a seam meets zeros only, as it met padding before.
//   loses when the copy into the padded image costs more than the larger image gains.

#include <algorithm>

#include "mutator/conv_chain.h"
#include "mutator/space.h"

namespace mendel {
namespace {

std::vector<Match> FindMatches(const Graph& graph, int32_t node) {
  const std::vector<ConvLink> chain = ConvChainEndingAt(graph, node);
  if (chain.empty()) return {};
  return MatchChains(graph, node, 1, KeepsSpace, BatchStackChoices(ShapeOf(graph, chain.back().conv)));
}

absl::StatusOr<Graph> Apply(const Graph& subprogram, const Match& match) {
  const auto chain = WholeChain(subprogram);
  if (!chain.ok()) return chain.status();
  const int64_t dim = match.choices.at("dim");
  const int64_t factor = match.choices.at("factor");
  const ConvLink& link = chain->front();
  const Window window = ShapeOf(subprogram, link.conv).windows[static_cast<size_t>(dim - 2)];
  const int64_t gap = std::max(window.pad_begin, window.pad_end);
  Emitter e;
  ValueId x = StackBatch(e, e.PadZero(e.InputsOf(subprogram)[0], dim, 0, gap), dim, factor);
  x = EmitLink(e, subprogram, link, x, subprogram.node(link.conv).attrs);
  e.Output("out0", e.Slice(UnstackBatch(e, x, dim, factor), dim, 0, window.input));
  return e.Finish();
}

absl::StatusOr<Graph> Sample(Rng& rng) {
  const int64_t kernel = rng.Flip() ? 3 : 5;
  return MakeConvSample({.input = {2 * rng.Between(1, 2), 2, rng.Between(5, 9), rng.Between(5, 9)},
                         .weight = {2, 2, kernel, kernel},
                         .strides = {1, 1},
                         .dilations = {1, 1},
                         .pads = {kernel / 2, kernel / 2, kernel / 2, kernel / 2},
                         .bias = rng.Flip()});
}

Rule Make() {
  Rule rule;
  rule.name = "batch_to_space_gap";
  rule.before = "Conv(x[N, C, H, W], w)";
  rule.after = "crop(unstack(Conv(stack(pad(x)), w))) with a zero gap between images";
  rule.precondition = "stride 1, space kept, k divides the batch";
  rule.loses_when = "padding and cropping copies cost more than the larger image gains";
  rule.match = &FindMatches;
  rule.apply = &Apply;
  rule.sample = &Sample;
  return rule;
}

MENDEL_REGISTER_RULE(&Make);

}  // namespace
}  // namespace mendel
