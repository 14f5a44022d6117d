// Compiled with AVX2 and FMA instructions: only called on machines that have them.
#include <immintrin.h>

#include "kernels/cpu/winograd_kernels.h"
#include "kernels/cpu/winograd_matrices.h"

#define MENDEL_INLINE __attribute__((always_inline)) inline

namespace mendel::cpu {
namespace {

using Vec = __m256;
constexpr int kLanes = 8;
constexpr int kPanelVectors = 2;
constexpr int kPanelRows = 6;
constexpr const char* kIsaName = "avx2";

MENDEL_INLINE Vec Load(const float* from) { return _mm256_loadu_ps(from); }
MENDEL_INLINE void Store(float* to, Vec x) { _mm256_storeu_ps(to, x); }
MENDEL_INLINE Vec Same(float x) { return _mm256_set1_ps(x); }
MENDEL_INLINE Vec Zero() { return _mm256_setzero_ps(); }
MENDEL_INLINE Vec Plus(Vec a, Vec b) { return _mm256_add_ps(a, b); }
MENDEL_INLINE Vec Minus(Vec a, Vec b) { return _mm256_sub_ps(a, b); }
MENDEL_INLINE Vec Times(Vec a, Vec b) { return _mm256_mul_ps(a, b); }
MENDEL_INLINE Vec MultiplyAdd(Vec a, Vec b, Vec c) { return _mm256_fmadd_ps(a, b, c); }
/// Of two numbers; the second when either is not one.
MENDEL_INLINE Vec Largest(Vec a, Vec b) { return _mm256_max_ps(a, b); }
MENDEL_INLINE Vec Smallest(Vec a, Vec b) { return _mm256_min_ps(a, b); }
MENDEL_INLINE Vec Both(Vec a, Vec mask) { return _mm256_and_ps(a, mask); }
MENDEL_INLINE Vec FirstLanes(int64_t count) {
  const __m256i lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  return _mm256_castsi256_ps(_mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(count)), lanes));
}

#include "kernels/cpu/winograd_kernels.inc"
#include "kernels/cpu/winograd_multiply.inc"

}  // namespace

const WinogradIsa& WinogradAvx2() {
  static constexpr WinogradIsa kKernels = kIsa;
  return kKernels;
}

}  // namespace mendel::cpu
