// Double-precision matrix product for the reference evaluator.
#ifndef MENDEL_BASE_GEMM_H_
#define MENDEL_BASE_GEMM_H_

#include <cstdint>

namespace mendel {

/// c[m x n] (+)= a[m x k] * b[k x n], row-major, leading dimensions in elements; single-threaded, deterministic. Operands may
/// not alias `c`.
void GemmF64(int64_t m, int64_t n, int64_t k, const double* a, int64_t lda, const double* b, int64_t ldb, double* c, int64_t ldc,
             bool accumulate);

}  // namespace mendel

#endif  // MENDEL_BASE_GEMM_H_
