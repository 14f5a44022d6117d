// Random matrix products with what is around them, for tests on a device.
#ifndef MENDEL_KERNELS_CUDA_TESTING_PRODUCT_CASE_H_
#define MENDEL_KERNELS_CUDA_TESTING_PRODUCT_CASE_H_

#include <cstdint>

#include "kernels/cuda/testing/device_case.h"
#include "runtime/numerics.h"

namespace mendel::cuda {

/// One MatMul with odd extents, vectors included, in f32, f16 or bf16: batches that broadcast or do
/// not, operands behind Transpose (of rows and columns, or of heads and positions), Reshape and
/// Expand, which others may read too, and behind Slice and Concat, stored right sides, and an
/// epilogue of additions, Relu, Gelu; the program is left empty. Where `numerics` rounds operands,
/// f32 ones have more bits than any format.
DeviceCase RandomProduct(uint64_t seed, Numerics numerics);

/// Softmax of a product of queries and keys, times values, of 2 to 4 dimensions in f32, f16 or
/// bf16: operands that lie as they are read, or behind Transpose and Reshape with heads beside
/// positions, a stored scale or none, a mask or none, and a Transpose after it or none. Some are
/// the queries of another one, or an operand of a product. Few have a second reader of what is
/// between the products, or rows of another length than cuDNN takes. The program is left empty.
DeviceCase RandomAttention(uint64_t seed, Numerics numerics);

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_TESTING_PRODUCT_CASE_H_
