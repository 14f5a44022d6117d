// Random sums of products, for the tests of the algebra and the samples of its rule.
#ifndef MENDEL_MUTATOR_INDEX_SAMPLE_PRODUCTS_H_
#define MENDEL_MUTATOR_INDEX_SAMPLE_PRODUCTS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "base/random.h"
#include "graph/graph.h"

namespace mendel {

struct ProductSample {
  const char* name;
  absl::StatusOr<Graph> (*make)(Rng& rng);
};

/// branches (convolutions of several kernels, the input, its batch normalization), low_rank, chain,
/// pointwise_chain, distances, shared_weights, summed_rows, pooled, repeated_part,
/// linear_attention, shared_layer (an output reads the layer in the middle, too).
const std::vector<ProductSample>& ProductSamples();

}  // namespace mendel

#endif  // MENDEL_MUTATOR_INDEX_SAMPLE_PRODUCTS_H_
