// Matrix products of i32, i64 and f64, row-major.
#ifndef MENDEL_KERNELS_CPU_KERNELS_TYPED_MATMUL_H_
#define MENDEL_KERNELS_CPU_KERNELS_TYPED_MATMUL_H_

#include <cstdint>
#include <memory>

#include "graph/tensor.h"
#include "kernels/cpu/kernels/kernel.h"

namespace mendel::cpu {

/// to[b] = left[b] * right[b] for each of `batch` products, [rows, depth] * [depth, columns].
struct TypedMatMul {
  Place left, right, to;
  DType dtype = DType::kI32;
  int64_t batch = 1, rows = 1, columns = 1, depth = 1;
  /// Elements from one product's operand to the next one's; 0: all have the same.
  int64_t left_step = 0, right_step = 0;
};

/// Integers wrap. Null for other types.
std::unique_ptr<Kernel> MakeTypedMatMulKernel(const TypedMatMul& problem);

}  // namespace mendel::cpu

#endif  // MENDEL_KERNELS_CPU_KERNELS_TYPED_MATMUL_H_
