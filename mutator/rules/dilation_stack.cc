// Dilated convolutions are computed without dilation, the residues stacked in space.
//
//   before  Conv(x, w){dilation d, stride 1}   (regions as in dilation_to_batch)
//   after   unstack(Conv(stack(x), w){dilation 1})
//           stack moves position t*d + r to r*ceil(H/d) + t
//
// Partial: wrong in `reach` rows on each side of every seam between residues, and each further link
// of a chain adds its reach. One large image tiles better than the d*d small ones of
// dilation_to_batch.

#include "mutator/layout.h"
#include "mutator/sample.h"

namespace mendel::rules::dilation_stack {
namespace {

constexpr int kMaxWindows = 4;
constexpr double kMaxShare = 0.6;

std::vector<Match> FindMatches(const Graph& graph, int32_t node, const Predictor&) {
  return MatchLayouts(graph, node, kMaxWindows, kMaxShare, [](const Graph& region) {
    return ResidueLayouts(region, Move::kResiduesStacked);
  });
}

absl::StatusOr<Graph> Apply(const Graph& region, const Match& match, const Predictor&) {
  return ApplyLayout(region,
                     {Move::kResiduesStacked, FactorsOf(match, SpatialRank(region)), false});
}

absl::StatusOr<std::vector<std::vector<Box>>> Wrong(const Graph& region, const Match& match) {
  auto wrong =
      WrongIn(region, {Move::kResiduesStacked, FactorsOf(match, SpatialRank(region)), false});
  if (!wrong.ok()) return wrong.status();
  return std::move(wrong->boxes);
}

absl::StatusOr<Graph> Sample(Rng& rng) {
  const size_t rank = static_cast<size_t>(rng.Between(1, 2));
  const int64_t dilation = rng.Between(2, 3);
  Shape input = {rng.Between(1, 2), 2};
  for (size_t d = 0; d < rank; ++d) input.push_back(rng.Between(7 * dilation, 9 * dilation));
  return MakeRegionSample(rng, {.input = input,
                                .kernel = Shape(rank, 3),
                                .dilation = dilation,
                                .links = static_cast<int>(rng.Between(1, 2)),
                                .pool = false});
}

Rule Make() {
  Rule rule;
  rule.name = "dilation_stack";
  rule.family = "dilation and stride";
  rule.before = "Conv(x, w){dilation d}, regions with residual adds and pointwise operators";
  rule.after = "unstack(Conv(stack(x), w){dilation 1}), residues stacked in space";
  rule.precondition = "stride 1, padding a multiple of d, at most 60 % of the output wrong";
  rule.loses_when = "correcting the seams costs more than the dense kernel gains";
  rule.claim = Claim::kPartial;
  rule.match = &FindMatches;
  rule.apply = &Apply;
  rule.wrong = &Wrong;
  rule.sample = &Sample;
  return rule;
}

MENDEL_REGISTER_RULE(&Make);

}  // namespace
}  // namespace mendel::rules::dilation_stack
