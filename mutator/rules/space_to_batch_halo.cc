// One image is cut into tiles with the halo that their windows read: space_to_batch made exact.
//
//   before  Conv(x[N, C, H, W], w)
//   after   join(Conv(concat_i(positions [i*L*s - pad, i*L*s - pad + reach) of x), w){no padding})
//           L = ceil(out / k)
//
// Exact, for any stride and dilation. k cuts along one dimension or several; extents are padded
// where k does not divide them.

#include <algorithm>

#include "base/status.h"
#include "mutator/conv_chain.h"
#include "mutator/layout.h"
#include "mutator/sample.h"
#include "mutator/space.h"

namespace mendel::rules::space_to_batch_halo {
namespace {

constexpr double kMaxCopied = 1.5;  // times the input

int64_t TileReach(const Window& window, int64_t outputs) {
  return (outputs - 1) * window.stride + window.dilation * (window.kernel - 1) + 1;
}

bool Worthwhile(const ConvShape& shape, const Ints& factors) {
  double copied = 1;
  bool overlaps = false;
  for (size_t d = 0; d < factors.size(); ++d) {
    if (factors[d] == 1) continue;
    const int64_t outputs = (shape.out_spatial[d] + factors[d] - 1) / factors[d];
    copied *= static_cast<double>(factors[d] * TileReach(shape.windows[d], outputs)) /
              static_cast<double>(shape.windows[d].input);
    overlaps = overlaps || shape.windows[d].kernel > 1;
  }
  return overlaps && copied <= kMaxCopied;
}

std::vector<Match> FindMatches(const Graph& graph, int32_t node, const Predictor&) {
  const std::vector<ConvLink> chain = ConvChainEndingAt(graph, node);
  if (chain.empty()) return {};
  const ConvShape shape = ShapeOf(graph, chain.back().conv);
  const size_t rank = shape.windows.size();
  std::vector<std::map<std::string, int64_t>> choices;
  const auto longest = std::max_element(shape.out_spatial.begin(), shape.out_spatial.end());
  for (int64_t factor : {2, 4}) {
    Ints rows(rank, 1), both(rank, 1);
    rows[static_cast<size_t>(longest - shape.out_spatial.begin())] = factor;
    both[rank - 1] = both[0] = 2;
    for (const Ints& factors : {rows, both}) {
      if (!Worthwhile(shape, factors) || (factors == both && (factor == 4 || rank == 1))) continue;
      std::map<std::string, int64_t> choice;
      for (size_t d = 0; d < rank; ++d) choice[Cat("dim", d + 2)] = factors[d];
      choices.push_back(choice);
    }
  }
  return MatchLink(
      graph, node, [](const ConvShape&) { return true; }, choices);
}

absl::StatusOr<Graph> Apply(const Graph& subprogram, const Match& match, const Predictor&) {
  const auto chain = WholeChain(subprogram);
  if (!chain.ok()) return chain.status();
  const ConvLink& link = chain->front();
  const ConvShape shape = ShapeOf(subprogram, link.conv);
  const size_t rank = shape.windows.size();
  const Ints factors = FactorsOf(match, rank);
  Emitter e;
  std::vector<ValueId> tiles = {e.InputsOf(subprogram)[0]};
  Ints pads = subprogram.node(link.conv).attrs.IntList("pads");
  for (size_t d = 0; d < rank; ++d) {
    if (factors[d] == 1) continue;
    const Window& window = shape.windows[d];
    const int64_t dim = static_cast<int64_t>(d + 2);
    const int64_t outputs = (shape.out_spatial[d] + factors[d] - 1) / factors[d];
    const int64_t reach = TileReach(window, outputs);
    const int64_t needed = (factors[d] - 1) * outputs * window.stride + reach;
    std::vector<ValueId> cut;
    for (ValueId tile : tiles) {
      const ValueId x = e.PadZero(tile, dim, window.pad_begin,
                                  std::max<int64_t>(0, needed - window.pad_begin - window.input));
      for (int64_t i = 0; i < factors[d]; ++i) {
        cut.push_back(
            e.Slice(x, dim, i * outputs * window.stride, i * outputs * window.stride + reach));
      }
    }
    tiles = std::move(cut);
    pads[d] = pads[rank + d] = 0;
  }
  const ValueId y = EmitLink(
      e, subprogram, link, e.Concat(tiles, 0),
      ChangedWindows(subprogram, link.conv, {.strides = {}, .dilations = {}, .pads = pads}));
  e.Output("out0", e.Cut(JoinTiles(e, y, factors),
                         Box::Whole(subprogram.type(subprogram.outputs()[0].value).shape)));
  return e.Finish();
}

absl::StatusOr<Graph> Sample(Rng& rng) {
  const size_t rank = static_cast<size_t>(rng.Between(1, 3));
  Shape input = {rng.Between(1, 2), 2};
  for (size_t d = 0; d < rank; ++d)
    input.push_back(rng.Between(rank == 3 ? 9 : 14, rank == 3 ? 10 : 24));
  return MakeRegionSample(rng, {.input = input,
                                .kernel = Shape(rank, rng.Between(2, 3)),
                                .dilation = rng.Between(1, rank == 3 ? 1 : 2),
                                .first_stride = rng.Between(1, 2),
                                .padded = rng.Flip(),
                                .residual = false,
                                .pool = false});
}

Rule Make() {
  Rule rule;
  rule.name = "space_to_batch_halo";
  rule.family = "batch and space";
  rule.before = "Conv(x[N, C, H, W], w)";
  rule.after =
      "concat of k tiles in the batch with halo, Conv without padding, joined back; any stride and "
      "dilation";
  rule.precondition = "tiles with halo at most 1.5 times the input";
  rule.loses_when = "copying the halo costs more than the batch gains";
  rule.match = &FindMatches;
  rule.apply = &Apply;
  rule.sample = &Sample;
  return rule;
}

MENDEL_REGISTER_RULE(&Make);

}  // namespace
}  // namespace mendel::rules::space_to_batch_halo
