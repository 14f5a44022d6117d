// Dilated convolutions are computed without dilation: positions modulo d go to the batch.
//
//   before  Conv(x, w){dilation d, stride 1}
//   after   unview(Conv(view(x), w){dilation 1}),  view = ResiduesToBatch
//
// Exact: position t*d + r of the output reads positions of residue r + const only. An extent that d
// does not divide is padded with zeros and the result cropped, where that stays exact.
//
// A region may contain residual adds, pointwise operators and 1x1 convolutions; d is the common
// divisor of its dilations. The rule gains where Winograd or better tiling becomes possible.
//
// Source: space-to-batch, PET section 4.

#include "mutator/layout.h"
#include "mutator/sample.h"

namespace mendel::rules::dilation_to_batch {
namespace {

constexpr int kMaxWindows = 16;

std::vector<Match> FindMatches(const Graph& graph, int32_t node, const Predictor&) {
  return MatchLayouts(graph, node, kMaxWindows, 0, [](const Graph& region) {
    return ResidueLayouts(region, Move::kResiduesToBatch);
  });
}

absl::StatusOr<Graph> Apply(const Graph& region, const Match& match, const Predictor&) {
  return ApplyLayout(region,
                     {Move::kResiduesToBatch, FactorsOf(match, SpatialRank(region)), false});
}

absl::StatusOr<Graph> Sample(Rng& rng) {
  const size_t rank = static_cast<size_t>(rng.Between(1, 3));
  const int64_t dilation = rng.Between(2, rank == 3 ? 2 : 4);
  const int links = rank == 3 ? 1 : static_cast<int>(rng.Between(1, 2));
  Shape input = {rng.Between(1, 2), 2};
  for (size_t d = 0; d < rank; ++d)
    input.push_back(links == 2 ? 3 * dilation : rng.Between(2 * dilation, 4 * dilation));
  return MakeRegionSample(rng, {.input = input,
                                .kernel = Shape(rank, 3),
                                .dilation = dilation,
                                .links = links,
                                .pool = false});
}

Rule Make() {
  Rule rule;
  rule.name = "dilation_to_batch";
  rule.family = "dilation and stride";
  rule.before = "Conv(x, w){dilation d}, regions with residual adds and pointwise operators";
  rule.after = "residues from batch(Conv(residues to batch(x), w){dilation 1})";
  rule.precondition =
      "stride 1 and padding a multiple of d in every dilated dimension; chains: d divides the "
      "extents";
  rule.loses_when = "the views cost more than the dense kernel gains";
  rule.match = &FindMatches;
  rule.apply = &Apply;
  rule.sample = &Sample;
  return rule;
}

MENDEL_REGISTER_RULE(&Make);

}  // namespace
}  // namespace mendel::rules::dilation_to_batch
