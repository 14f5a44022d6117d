// Sums of products by strides, for contractions that no matrix product computes: any number of
// summed dimensions, diagonals, labels of one operand alone.
#ifndef MENDEL_KERNELS_CPU_KERNELS_EINSUM_H_
#define MENDEL_KERNELS_CPU_KERNELS_EINSUM_H_

#include <memory>

#include "kernels/cpu/kernels/kernel.h"

namespace mendel::cpu {

/// to[i] = sum over s of left[i . left_out + s . left_sum] * right[likewise], `to` row-major of
/// shape `out`. Strides in elements.
struct StridedContraction {
  Place left, right, to;
  Shape out, summed;
  Shape left_out, right_out;  ///< one a dimension of `out`
  Shape left_sum, right_sum;  ///< one a dimension of `summed`
};

/// Computes f32 (sums in double), f64, i32 or i64 (which wrap).
std::unique_ptr<Kernel> MakeStridedContractionKernel(StridedContraction contraction, DType dtype);

}  // namespace mendel::cpu

#endif  // MENDEL_KERNELS_CPU_KERNELS_EINSUM_H_
