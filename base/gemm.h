// Double-precision matrix product for the reference evaluator.
#ifndef MENDEL_BASE_GEMM_H_
#define MENDEL_BASE_GEMM_H_

#include <cstdint>
#include <vector>

namespace mendel {

/// c[m x n] (+)= a[m x k] * b[k x n], row-major, leading dimensions in elements; single-threaded,
/// deterministic on one machine. Operands may not alias `c`. Uses the widest vector unit that the
/// processor has (found at run time).
void GemmF64(int64_t m, int64_t n, int64_t k, const double* a, int64_t lda, const double* b,
             int64_t ldb, double* c, int64_t ldc, bool accumulate);

/// Vector units that GemmF64 has a kernel for.
enum class GemmTarget { kPortable, kAvx2, kAvx512 };

/// The targets that this processor can run; the last is the one GemmF64 uses.
std::vector<GemmTarget> SupportedGemmTargets();

/// GemmF64 with the kernel of one supported target (for tests).
void GemmF64On(GemmTarget target, int64_t m, int64_t n, int64_t k, const double* a, int64_t lda,
               const double* b, int64_t ldb, double* c, int64_t ldc, bool accumulate);

}  // namespace mendel

#endif  // MENDEL_BASE_GEMM_H_
