// Images of a batch are tiled into larger images.
//
//   before  Conv(x[N, C, H, W], w)
//   after   untile(Conv(tile(x)[N/k, C, k_h*H, k_w*W], w)),  k = k_h*k_w
//
// Partial: wrong in `reach` rows on each side of every seam between images, and each further link
// of a chain adds its reach. batch_to_space_gap is the exact variant.
//
// A match may contain pools, biases, activations, residual adds and further convolutions, in 1 to 3
// dimensions. Images are padded where strides do not divide them, and a batch that k does not
// divide is padded with empty images.
//
// Source: PET (OSDI 2021), figure 3.

#include "mutator/layout.h"
#include "mutator/sample.h"

namespace mendel::rules::batch_to_space {
namespace {

constexpr int kMaxWindows = 8;
constexpr double kMaxShare = 0.5;

Layout LayoutOf(const Graph& region, const Match& match) {
  return {Move::kBatchToSpace, FactorsOf(match, SpatialRank(region)), false};
}

std::vector<Match> FindMatches(const Graph& graph, int32_t node, const Predictor&) {
  return MatchLayouts(graph, node, kMaxWindows, kMaxShare,
                      [](const Graph& region) { return TileLayouts(region, Move::kBatchToSpace); });
}

absl::StatusOr<Graph> Apply(const Graph& region, const Match& match, const Predictor&) {
  return ApplyLayout(region, LayoutOf(region, match));
}

absl::StatusOr<std::vector<std::vector<Box>>> Wrong(const Graph& region, const Match& match) {
  auto wrong = WrongIn(region, LayoutOf(region, match));
  if (!wrong.ok()) return wrong.status();
  return std::move(wrong->boxes);
}

absl::StatusOr<Graph> Sample(Rng& rng) {
  const size_t rank = static_cast<size_t>(rng.Between(1, 3));
  Shape input = {rng.Between(2, 6), 2};
  Shape kernel;
  for (size_t d = 0; d < rank; ++d) {
    input.push_back(rng.Between(rank == 3 ? 4 : 7, rank == 3 ? 6 : 9));
    kernel.push_back(rng.Between(2, rank == 3 ? 3 : 4));
  }
  return MakeRegionSample(rng, {.input = input,
                                .kernel = kernel,
                                .first_stride = rng.Between(1, 2),
                                .links = static_cast<int>(rng.Between(1, rank == 3 ? 1 : 2)),
                                .padded = rng.Between(0, 3) > 0});
}

Rule Make() {
  Rule rule;
  rule.name = "batch_to_space";
  rule.family = "batch and space";
  rule.before = "Conv(x[N, C, H, W], w), regions with pools, residual adds and pointwise operators";
  rule.after = "untile(Conv(tile(x)[N/k, C, k_h*H, k_w*W], w)), any k, any dimensions";
  rule.precondition =
      "at most half of the output wrong; k divides the batch or the batch is padded";
  rule.loses_when = "correcting the seams costs more than the larger image gains";
  rule.claim = Claim::kPartial;
  rule.match = &FindMatches;
  rule.apply = &Apply;
  rule.wrong = &Wrong;
  rule.sample = &Sample;
  return rule;
}

MENDEL_REGISTER_RULE(&Make);

}  // namespace
}  // namespace mendel::rules::batch_to_space
