// Random chains around products for which tiled kernels are made, for tests.
#ifndef MENDEL_KERNELS_CUDA_TILED_CHAIN_CASE_H_
#define MENDEL_KERNELS_CUDA_TILED_CHAIN_CASE_H_

#include <cstdint>

#include "kernels/cuda/testing/device_case.h"
#include "kernels/cuda/tiled/case_maker.h"

namespace mendel::cuda {

/// One gated pair, one normalized or softmaxed left side, or a product behind an RMS normalization
/// in elementary operators; with odd extents, batches, transposed right sides and elementwise
/// operators before and after. The program is left empty.
DeviceCase RandomChain(uint64_t seed, ChainValues values);

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_TILED_CHAIN_CASE_H_
