// Images of a batch are tiled into larger images with gaps of zeros: batch_to_space made exact.
//
//   before  Conv(x[N, C, H, W], w)   (regions as in batch_to_space)
//   after   crop(untile(Conv(tile(pad(x))[N/k, C, k_h*(H+g), k_w*(W+g)], w)))
//
// Exact where all values are finite: a window that crosses a seam reads zeros, as it read padding
// before. The gaps are set to zero again before every further window.

#include "mutator/layout.h"
#include "mutator/sample.h"

namespace mendel::rules::batch_to_space_gap {
namespace {

constexpr int kMaxWindows = 4;

std::vector<Layout> Layouts(const Graph& region) {
  std::vector<Layout> layouts;
  for (Layout layout : TileLayouts(region, Move::kBatchToSpace)) {
    const auto without = WrongIn(region, layout);
    if (without.ok() && without->Nowhere()) continue;  // needs no gap
    layout.gaps = true;
    layouts.push_back(layout);
  }
  return layouts;
}

std::vector<Match> FindMatches(const Graph& graph, int32_t node, const Predictor&) {
  return MatchLayouts(graph, node, kMaxWindows, 0, Layouts);
}

absl::StatusOr<Graph> Apply(const Graph& region, const Match& match, const Predictor&) {
  return ApplyLayout(region, {Move::kBatchToSpace, FactorsOf(match, SpatialRank(region)), true});
}

absl::StatusOr<Graph> Sample(Rng& rng) {
  const size_t rank = static_cast<size_t>(rng.Between(1, 3));
  Shape input = {rng.Between(2, 6), 2};
  Shape kernel;
  for (size_t d = 0; d < rank; ++d) {
    input.push_back(rng.Between(3, rank == 3 ? 4 : 9));
    kernel.push_back(rng.Between(2, rank == 3 ? 3 : 4));
  }
  return MakeRegionSample(rng, {.input = input,
                                .kernel = kernel,
                                .dilation = rng.Between(1, 2),
                                .first_stride = rng.Between(1, 2),
                                .links = static_cast<int>(rng.Between(1, rank == 3 ? 1 : 2))});
}

Rule Make() {
  Rule rule;
  rule.name = "batch_to_space_gap";
  rule.family = "batch and space";
  rule.before = "Conv(x[N, C, H, W], w), regions with residual adds and pointwise operators";
  rule.after =
      "crop(untile(Conv(tile(pad(x)), w))) with zero gaps between images, any k, any dimensions";
  rule.precondition =
      "every window that leaves an image reads zeros there (no pool that distinguishes padding "
      "from zero)";
  rule.loses_when = "padding, zeroing and cropping copies cost more than the larger image gains";
  rule.match = &FindMatches;
  rule.apply = &Apply;
  rule.sample = &Sample;
  return rule;
}

MENDEL_REGISTER_RULE(&Make);

}  // namespace
}  // namespace mendel::rules::batch_to_space_gap
