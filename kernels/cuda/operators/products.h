// Matrix products and convolutions as sums of products over two indices, for tiled kernels
// (kernels/cuda/tiled/).
#ifndef MENDEL_KERNELS_CUDA_OPERATORS_PRODUCTS_H_
#define MENDEL_KERNELS_CUDA_OPERATORS_PRODUCTS_H_

#include "kernels/cuda/fusion/operator_text.h"

namespace mendel::cuda {

/// Rows and columns are those of the matrices; the batch broadcasts.
ProductText MatMulProduct();
/// A matrix a group: output channels by positions of all images, over input channels and taps (an
/// implicit GEMM). Of any rank.
ProductText ConvProduct();
/// The same; taps that meet no input position count as zeros.
ProductText ConvTransposeProduct();

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_OPERATORS_PRODUCTS_H_
