// Plain programs of linear operators with random shapes, for the generator's tests and its rule's
// samples.
#ifndef MENDEL_MUTATOR_INDEX_SAMPLE_SITES_H_
#define MENDEL_MUTATOR_INDEX_SAMPLE_SITES_H_

#include <vector>

#include "absl/status/statusor.h"
#include "base/random.h"
#include "graph/graph.h"

namespace mendel {

struct SiteSample {
  const char* name;
  absl::StatusOr<Graph> (*make)(Rng& rng);
};

/// conv, conv5x5, strided, conv_transpose, dilated, grouped, banded (one product of rows a band
/// position, concatenated), banded_sum (the transposed map, a sum over band positions), matmul,
/// einsum, viewed (a convolution between views).
const std::vector<SiteSample>& SiteSamples();
/// A dilated, a transposed or a 5x5 convolution with enough channels that rearranging it may pay.
absl::StatusOr<Graph> MakeWideSite(Rng& rng);
/// CHECK-fails when there is no such sample.
const SiteSample& FindSiteSample(const char* name);

}  // namespace mendel

#endif  // MENDEL_MUTATOR_INDEX_SAMPLE_SITES_H_
