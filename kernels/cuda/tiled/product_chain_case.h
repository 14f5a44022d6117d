// Random chains of two products, for tests.
#ifndef MENDEL_KERNELS_CUDA_TILED_PRODUCT_CHAIN_CASE_H_
#define MENDEL_KERNELS_CUDA_TILED_PRODUCT_CHAIN_CASE_H_

#include <cstdint>

#include "kernels/cuda/testing/device_case.h"
#include "kernels/cuda/tiled/case_maker.h"

namespace mendel::cuda {

/// f(A x B) x D, or an attention with its scale, mask and softmax; with odd extents, batches,
/// transposed right sides and what is elementwise before, between and after. The program is left
/// empty.
DeviceCase RandomMatrixChain(uint64_t seed, ChainValues values);
/// A convolution of a convolution, 1-D to 3-D: taps, strides, dilations, pads and groups of each,
/// elementwise operators between and after; the first one may be transposed.
DeviceCase RandomConvolutionChain(uint64_t seed, ChainValues values);

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_TILED_PRODUCT_CHAIN_CASE_H_
