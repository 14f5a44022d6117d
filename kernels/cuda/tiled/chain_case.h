// Random chains around products for which tiled kernels are made, for tests.
#ifndef MENDEL_KERNELS_CUDA_TILED_CHAIN_CASE_H_
#define MENDEL_KERNELS_CUDA_TILED_CHAIN_CASE_H_

#include <cstdint>

#include "kernels/cuda/device_case.h"

namespace mendel::cuda {

/// What RandomChain makes: which operators may occur.
enum class ChainValues {
  kFloats,     ///< normalisations, softmax and transcendental functions, too
  kPolynomial  ///< sums, products and what the judge takes as an oracle of one element; in f32
};

/// One gated pair, one normalised or softmaxed left side, or a product behind an RMS normalisation in elementary operators; with
/// odd extents, batches, transposed right sides and elementwise operators before and after. The program is left empty.
DeviceCase RandomChain(uint64_t seed, ChainValues values);

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_TILED_CHAIN_CASE_H_
