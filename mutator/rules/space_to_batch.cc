// One image is cut into stripes or tiles that go to the batch.
//
//   before  Conv(x[N, C, H, W], w)   (regions as in batch_to_space)
//   after   join(Conv(cut(x)[N*k, C, H/k_h, W/k_w], w))
//
// Partial: wrong in `reach` rows on each side of every cut. An extent that k times the strides does
// not divide is padded, which grows the wrong region at the far edge. The rule rarely wins on one
// core. space_to_batch_halo is the exact variant.

#include "mutator/layout.h"
#include "mutator/sample.h"

namespace mendel::rules::space_to_batch {
namespace {

constexpr int kMaxWindows = 4;
constexpr double kMaxShare = 0.25;

std::vector<Layout> Layouts(const Graph& region) {
  std::vector<Layout> layouts;
  for (const Layout& layout : TileLayouts(region, Move::kSpaceToBatch)) {
    const auto wrong = WrongIn(region, layout);
    if (wrong.ok() && !wrong->Nowhere()) layouts.push_back(layout);  // windows of 1 gain nothing
  }
  return layouts;
}

std::vector<Match> FindMatches(const Graph& graph, int32_t node, const Predictor&) {
  return MatchLayouts(graph, node, kMaxWindows, kMaxShare, Layouts);
}

absl::StatusOr<Graph> Apply(const Graph& region, const Match& match, const Predictor&) {
  return ApplyLayout(region, {Move::kSpaceToBatch, FactorsOf(match, SpatialRank(region)), false});
}

absl::StatusOr<std::vector<std::vector<Box>>> Wrong(const Graph& region, const Match& match) {
  auto wrong = WrongIn(region, {Move::kSpaceToBatch, FactorsOf(match, SpatialRank(region)), false});
  if (!wrong.ok()) return wrong.status();
  return std::move(wrong->boxes);
}

absl::StatusOr<Graph> Sample(Rng& rng) {
  const size_t rank = static_cast<size_t>(rng.Between(1, 2));
  Shape input = {rng.Between(1, 2), 2, rng.Between(18, 25)};
  if (rank == 2) input.push_back(rng.Between(10, 14));
  return MakeRegionSample(rng, {.input = input,
                                .kernel = Shape(rank, rng.Between(2, 3)),
                                .first_stride = rng.Between(1, 2),
                                .links = static_cast<int>(rng.Between(1, 2)),
                                .padded = rng.Between(0, 3) > 0});
}

Rule Make() {
  Rule rule;
  rule.name = "space_to_batch";
  rule.family = "batch and space";
  rule.before = "Conv(x[N, C, H, W], w), regions with pools, residual adds and pointwise operators";
  rule.after = "join(Conv(cut(x)[N*k, C, H/k_h, W/k_w], w)), along one dimension or several";
  rule.precondition = "at most a quarter of the output wrong";
  rule.loses_when = "the machine parallelizes one image as well as a batch";
  rule.claim = Claim::kPartial;
  rule.match = &FindMatches;
  rule.apply = &Apply;
  rule.wrong = &Wrong;
  rule.sample = &Sample;
  return rule;
}

MENDEL_REGISTER_RULE(&Make);

}  // namespace
}  // namespace mendel::rules::space_to_batch
