#include "verifier/witness/early_steps.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/status.h"
#include "graph/loop.h"
#include "graph/rewrite.h"
#include "verifier/witness/witness_pair.h"

namespace mendel {
namespace {

/// More steps are not written out.
constexpr int64_t kMostSteps = 64;
/// Parts have so many slices, then this multiple.
constexpr int64_t kFirstSlices = 2;
constexpr int64_t kGrowth = 4;
/// A side is taken where its first part costs less than this share of the whole.
constexpr double kFewSteps = 0.1;

/// A side of a box: its first or last positions along a dimension.
struct Side {
  size_t dim = 0;
  bool last = false;

  Box Part(const Box& whole, int64_t slices) const {
    Box part = whole;
    if (last) part.begin[dim] = whole.end[dim] - slices;
    if (!last) part.end[dim] = whole.begin[dim] + slices;
    return part;
  }
};

/// The side whose first slices need the least work, if that is little.
absl::StatusOr<std::optional<Side>> CheapestSide(const Graph& joint, const WitnessQuery& query) {
  MENDEL_ASSIGN_OR_RETURN(const Graph all, RestrictPair(joint, {{query.output, query.box}}));
  double least = kFewSteps * TotalFlops(all);
  std::optional<Side> cheapest;
  for (size_t d = 0; d < query.box.begin.size(); ++d) {
    if (query.box.end[d] - query.box.begin[d] <= kFirstSlices) continue;
    for (const bool last : {false, true}) {
      const Side side{d, last};
      MENDEL_ASSIGN_OR_RETURN(
          const Graph part,
          RestrictPair(joint, {{query.output, side.Part(query.box, kFirstSlices)}}));
      const double flops = TotalFlops(part);
      if (flops >= least) continue;
      least = flops;
      cheapest = side;
    }
  }
  return cheapest;
}

}  // namespace

absl::StatusOr<std::vector<EarlyQuery>> EarlyQueries(const Graph& joint,
                                                     const WitnessQuery& query) {
  std::vector<EarlyQuery> parts;
  if (!HasLoop(joint)) return parts;
  MENDEL_ASSIGN_OR_RETURN(const std::optional<Side> side, CheapestSide(joint, query));
  if (!side.has_value()) return parts;
  const int64_t extent = query.box.end[side->dim] - query.box.begin[side->dim];
  for (int64_t slices = kFirstSlices; slices < extent; slices *= kGrowth) {
    const Box box = side->Part(query.box, slices);
    MENDEL_ASSIGN_OR_RETURN(const Graph part, RestrictPair(joint, {{query.output, box}}));
    absl::StatusOr<Graph> written = UnrollLoops(part, nullptr, kMostSteps);
    if (!written.ok()) break;  // more steps than are written out
    parts.push_back({box, *std::move(written)});
  }
  return parts;
}

}  // namespace mendel
