// One image cut into stripes that go to the batch.
//
//   before  Conv(x[N, C, H, W], w){keeps space}  [chains]
//   after   stack(Conv(unstack(x)[N*k, C, H/k, W], w))
//   partial: wrong in reach rows on each side of every cut. space_to_batch_halo is the exact variant.
//   loses almost always on one core; wins where a batch is parallelised better than an image.

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
    if (rows.input % k == 0 && rows.input / k > 4 * (rows.kernel - 1) * rows.dilation && rows.kernel > 1)
      choices.push_back({{"dim", 2}, {"factor", k}});
  }
  return MatchChains(graph, node, 2, KeepsSpace, choices);
}

absl::StatusOr<Graph> Apply(const Graph& subprogram, const Match& match) {
  const auto chain = WholeChain(subprogram);
  if (!chain.ok()) return chain.status();
  const int64_t dim = match.choices.at("dim");
  const int64_t factor = match.choices.at("factor");
  Emitter e;
  ValueId x = UnstackBatch(e, e.InputsOf(subprogram)[0], dim, factor);
  for (const ConvLink& link : *chain) x = EmitLink(e, subprogram, link, x, subprogram.node(link.conv).attrs);
  e.Output("out0", StackBatch(e, x, dim, factor));
  return e.Finish();
}

absl::StatusOr<Graph> Sample(Rng& rng) {
  return MakeConvSample({.input = {rng.Between(1, 2), 2, 18 + 2 * rng.Between(0, 3), rng.Between(3, 6)},
                         .weight = {2, 2, 3, 3},
                         .strides = {1, 1},
                         .dilations = {1, 1},
                         .pads = {1, 1, 1, 1},
                         .bias = rng.Flip(),
                         .length = rng.Flip() ? 2 : 1});
}

Rule Make() {
  Rule rule;
  rule.name = "space_to_batch";
  rule.before = "Conv(x[N, C, H, W], w), chains with pointwise operators between";
  rule.after = "stack(Conv(unstack(x)[N*k, C, H/k, W], w))";
  rule.precondition = "stride 1, space kept, k divides H, stripes much higher than the window";
  rule.loses_when = "the machine parallelises one image as well as a batch";
  rule.claim = Claim::kPartial;
  rule.match = &FindMatches;
  rule.apply = &Apply;
  rule.sample = &Sample;
  return rule;
}

MENDEL_REGISTER_RULE(&Make);

}  // namespace
}  // namespace mendel
