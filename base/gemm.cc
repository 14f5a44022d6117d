#include "base/gemm.h"

#include <algorithm>

namespace mendel {

void GemmF64(int64_t m, int64_t n, int64_t k, const double* a, int64_t lda, const double* b, int64_t ldb, double* c, int64_t ldc,
             bool accumulate) {
  for (int64_t i = 0; i < m; ++i) {
    double* row = c + i * ldc;
    if (!accumulate) std::fill(row, row + n, 0.0);
    for (int64_t p = 0; p < k; ++p) {
      const double factor = a[i * lda + p];
      const double* other = b + p * ldb;
      for (int64_t j = 0; j < n; ++j) row[j] += factor * other[j];
    }
  }
}

}  // namespace mendel
