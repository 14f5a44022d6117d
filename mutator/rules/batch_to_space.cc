// Images of a batch tiled into larger ones.
//
//   before  Conv(x[N, C, H, W], w){keeps space}  [chains]
//   after   unstack(Conv(stack(x)[N/k, C, k*H, W], w))   (or along W)
//   partial: wrong in reach rows on each side of every seam, growing link by link.
//   loses when mending costs more than the larger image gains. batch_to_space_gap is the exact variant.
// Source: PET figure 3.

#include "mutator/conv_chain.h"
#include "mutator/space.h"

namespace mendel {
namespace {

std::vector<Match> FindMatches(const Graph& graph, int32_t node) {
  const std::vector<ConvLink> chain = ConvChainEndingAt(graph, node);
  if (chain.empty()) return {};
  return MatchChains(graph, node, 2, KeepsSpace, BatchStackChoices(ShapeOf(graph, chain.back().conv)));
}

absl::StatusOr<Graph> Apply(const Graph& subprogram, const Match& match) {
  const auto chain = WholeChain(subprogram);
  if (!chain.ok()) return chain.status();
  const int64_t dim = match.choices.at("dim");
  const int64_t factor = match.choices.at("factor");
  Emitter e;
  ValueId x = StackBatch(e, e.InputsOf(subprogram)[0], dim, factor);
  for (const ConvLink& link : *chain) x = EmitLink(e, subprogram, link, x, subprogram.node(link.conv).attrs);
  e.Output("out0", UnstackBatch(e, x, dim, factor));
  return e.Finish();
}

absl::StatusOr<Graph> Sample(Rng& rng) {
  const int64_t kernel = rng.Flip() ? 3 : 5;
  return MakeConvSample({.input = {2 * rng.Between(1, 2), 2, rng.Between(7, 9), rng.Between(7, 9)},
                         .weight = {2, 2, kernel, kernel},
                         .strides = {1, 1},
                         .dilations = {1, 1},
                         .pads = {kernel / 2, kernel / 2, kernel / 2, kernel / 2},
                         .bias = rng.Flip(),
                         .length = rng.Flip() && kernel == 3 ? 2 : 1});
}

Rule Make() {
  Rule rule;
  rule.name = "batch_to_space";
  rule.before = "Conv(x[N, C, H, W], w), chains with pointwise operators between";
  rule.after = "unstack(Conv(stack(x)[N/k, C, k*H, W], w)), or along W";
  rule.precondition = "stride 1, space kept, k divides the batch";
  rule.loses_when = "mending the seams costs more than the larger image gains";
  rule.claim = Claim::kPartial;
  rule.match = &FindMatches;
  rule.apply = &Apply;
  rule.sample = &Sample;
  return rule;
}

MENDEL_REGISTER_RULE(&Make);

}  // namespace
}  // namespace mendel
