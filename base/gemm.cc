// Goto's scheme: B is packed into panels of kernel-width columns that stay in the L1 cache, A into
// panels of kernel-height rows that stay in the L2 cache, and a register-tiled kernel multiplies
// one panel of each. Panels are padded with zeros, so that kernels know no edges; only whole tiles
// are written by vector stores.

#include "base/gemm.h"

#include <immintrin.h>

#include <algorithm>

#include "base/check.h"

namespace mendel {
namespace {

// The k-extent of a panel: 24 columns of it fill three quarters of a 48 KiB L1 cache.
constexpr int64_t kDepth = 192;
constexpr int64_t kRows = 192;      // rows of A packed at a time: 288 KiB
constexpr int64_t kColumns = 1008;  // columns of B packed at a time: 1.5 MiB
constexpr int64_t kMaxTile = 8 * 24;

/// tile[rows x columns] = a_panel * b_panel over `depth` products; panels hold `rows` and `columns`
/// elements for each product. `ldc` is the tile's leading dimension; with `add` the tile is added
/// to.
using Kernel = void (*)(int64_t depth, const double* a, const double* b, double* tile, int64_t ldc,
                        bool add);

struct TargetKernel {
  int64_t rows;
  int64_t columns;
  Kernel run;
};

void PortableKernel(int64_t depth, const double* a, const double* b, double* tile, int64_t ldc,
                    bool add) {
  double sums[4][4] = {};
  for (int64_t p = 0; p < depth; ++p) {
    for (int64_t i = 0; i < 4; ++i) {
      for (int64_t j = 0; j < 4; ++j) sums[i][j] += a[p * 4 + i] * b[p * 4 + j];
    }
  }
  for (int64_t i = 0; i < 4; ++i) {
    for (int64_t j = 0; j < 4; ++j)
      tile[i * ldc + j] = add ? tile[i * ldc + j] + sums[i][j] : sums[i][j];
  }
}

__attribute__((target("avx2,fma"))) void Avx2Kernel(int64_t depth, const double* a, const double* b,
                                                    double* tile, int64_t ldc, bool add) {
  __m256d sums[6][2];
  for (auto& row : sums) row[0] = row[1] = _mm256_setzero_pd();
  for (int64_t p = 0; p < depth; ++p) {
    const __m256d b0 = _mm256_loadu_pd(b + p * 8);
    const __m256d b1 = _mm256_loadu_pd(b + p * 8 + 4);
#pragma GCC unroll 6
    for (int i = 0; i < 6; ++i) {
      const __m256d factor = _mm256_broadcast_sd(a + p * 6 + i);
      sums[i][0] = _mm256_fmadd_pd(factor, b0, sums[i][0]);
      sums[i][1] = _mm256_fmadd_pd(factor, b1, sums[i][1]);
    }
  }
#pragma GCC unroll 6
  for (int i = 0; i < 6; ++i) {
    for (int j = 0; j < 2; ++j) {
      double* out = tile + i * ldc + 4 * j;
      _mm256_storeu_pd(out, add ? _mm256_add_pd(_mm256_loadu_pd(out), sums[i][j]) : sums[i][j]);
    }
  }
}

__attribute__((target("avx512f"))) void Avx512Kernel(int64_t depth, const double* a,
                                                     const double* b, double* tile, int64_t ldc,
                                                     bool add) {
  __m512d sums[8][3];
  for (auto& row : sums) row[0] = row[1] = row[2] = _mm512_setzero_pd();
  for (int64_t p = 0; p < depth; ++p) {
    const __m512d b0 = _mm512_loadu_pd(b + p * 24);
    const __m512d b1 = _mm512_loadu_pd(b + p * 24 + 8);
    const __m512d b2 = _mm512_loadu_pd(b + p * 24 + 16);
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) {
      const __m512d factor = _mm512_set1_pd(a[p * 8 + i]);
      sums[i][0] = _mm512_fmadd_pd(factor, b0, sums[i][0]);
      sums[i][1] = _mm512_fmadd_pd(factor, b1, sums[i][1]);
      sums[i][2] = _mm512_fmadd_pd(factor, b2, sums[i][2]);
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) {
    for (int j = 0; j < 3; ++j) {
      double* out = tile + i * ldc + 8 * j;
      _mm512_storeu_pd(out, add ? _mm512_add_pd(_mm512_loadu_pd(out), sums[i][j]) : sums[i][j]);
    }
  }
}

TargetKernel KernelOf(GemmTarget target) {
  switch (target) {
    case GemmTarget::kAvx512:
      return {8, 24, &Avx512Kernel};
    case GemmTarget::kAvx2:
      return {6, 8, &Avx2Kernel};
    case GemmTarget::kPortable:
      break;
  }
  return {4, 4, &PortableKernel};
}

/// Scratch space of at least `count` doubles on a 64-byte boundary: a vector load then never
/// straddles two cache lines.
double* Aligned(std::vector<double>& scratch, int64_t count) {
  scratch.resize(std::max(scratch.size(), static_cast<size_t>(count + 8)));
  const uintptr_t address = reinterpret_cast<uintptr_t>(scratch.data());
  return scratch.data() + (64 - address % 64) % 64 / sizeof(double);
}

/// Panels of `width` columns: element (p, j) of panel q at ((q * depth) + p) * width + j.
void PackColumns(const double* b, int64_t ldb, int64_t depth, int64_t columns, int64_t width,
                 double* packed) {
  for (int64_t first = 0; first < columns; first += width) {
    const int64_t valid = std::min(width, columns - first);
    for (int64_t p = 0; p < depth; ++p, packed += width) {
      std::copy_n(b + p * ldb + first, valid, packed);
      std::fill(packed + valid, packed + width, 0.0);
    }
  }
}

void PackRows(const double* a, int64_t lda, int64_t rows, int64_t depth, int64_t height,
              double* packed) {
  for (int64_t first = 0; first < rows; first += height, packed += height * depth) {
    const int64_t valid = std::min(height, rows - first);
    for (int64_t i = 0; i < height; ++i) {
      for (int64_t p = 0; p < depth; ++p)
        packed[p * height + i] = i < valid ? a[(first + i) * lda + p] : 0.0;
    }
  }
}

/// One packed block of A times one of B. Tiles that overhang the block go through a buffer.
void MultiplyBlock(const TargetKernel& kernel, int64_t rows, int64_t columns, int64_t depth,
                   const double* a, const double* b, double* c, int64_t ldc, bool add) {
  double edge[kMaxTile];
  for (int64_t j = 0; j < columns; j += kernel.columns) {
    const int64_t width = std::min(kernel.columns, columns - j);
    for (int64_t i = 0; i < rows; i += kernel.rows) {
      const int64_t height = std::min(kernel.rows, rows - i);
      double* tile = c + i * ldc + j;
      if (width == kernel.columns && height == kernel.rows) {
        kernel.run(depth, a + i * depth, b + j * depth, tile, ldc, add);
        continue;
      }
      kernel.run(depth, a + i * depth, b + j * depth, edge, kernel.columns, false);
      for (int64_t y = 0; y < height; ++y) {
        for (int64_t x = 0; x < width; ++x) {
          const double sum = edge[y * kernel.columns + x];
          tile[y * ldc + x] = add ? tile[y * ldc + x] + sum : sum;
        }
      }
    }
  }
}

/// Few rows do not repay packing.
void MultiplyRows(int64_t m, int64_t n, int64_t k, const double* a, int64_t lda, const double* b,
                  int64_t ldb, double* c, int64_t ldc, bool accumulate) {
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

}  // namespace

std::vector<GemmTarget> SupportedGemmTargets() {
  std::vector<GemmTarget> targets = {GemmTarget::kPortable};
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    targets.push_back(GemmTarget::kAvx2);
  if (__builtin_cpu_supports("avx512f")) targets.push_back(GemmTarget::kAvx512);
  return targets;
}

void GemmF64On(GemmTarget target, int64_t m, int64_t n, int64_t k, const double* a, int64_t lda,
               const double* b, int64_t ldb, double* c, int64_t ldc, bool accumulate) {
  if (m <= 2 || k == 0) return MultiplyRows(m, n, k, a, lda, b, ldb, c, ldc, accumulate);
  const TargetKernel kernel = KernelOf(target);
  MENDEL_CHECK(kernel.rows * kernel.columns <= kMaxTile && kColumns % kernel.columns == 0 &&
               kRows % kernel.rows == 0);
  thread_local std::vector<double> a_scratch, b_scratch;
  double* a_packed = Aligned(a_scratch, std::min(kRows, m + kernel.rows) * std::min(kDepth, k));
  double* b_packed =
      Aligned(b_scratch, std::min(kColumns, n + kernel.columns) * std::min(kDepth, k));
  for (int64_t column = 0; column < n; column += kColumns) {
    const int64_t columns = std::min(kColumns, n - column);
    for (int64_t start = 0; start < k; start += kDepth) {
      const int64_t depth = std::min(kDepth, k - start);
      PackColumns(b + start * ldb + column, ldb, depth, columns, kernel.columns, b_packed);
      for (int64_t row = 0; row < m; row += kRows) {
        const int64_t rows = std::min(kRows, m - row);
        PackRows(a + row * lda + start, lda, rows, depth, kernel.rows, a_packed);
        MultiplyBlock(kernel, rows, columns, depth, a_packed, b_packed, c + row * ldc + column, ldc,
                      accumulate || start > 0);
      }
    }
  }
}

void GemmF64(int64_t m, int64_t n, int64_t k, const double* a, int64_t lda, const double* b,
             int64_t ldb, double* c, int64_t ldc, bool accumulate) {
  static const GemmTarget target = SupportedGemmTargets().back();
  GemmF64On(target, m, n, k, a, lda, b, ldb, c, ldc, accumulate);
}

}  // namespace mendel
