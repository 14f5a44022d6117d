// Compiled with AVX2 and FMA instructions: only called on machines that have them.
#include <immintrin.h>

#include <algorithm>

#include "kernels/cpu/strip_kernels.h"

#define MENDEL_INLINE __attribute__((always_inline)) inline

namespace mendel::cpu {
namespace {

using Vec = __m256;
constexpr int kLanes = 8;
constexpr int kPanelVectors = 2;
constexpr const char* kIsaName = "avx2";

MENDEL_INLINE Vec Load(const float* from) { return _mm256_loadu_ps(from); }
MENDEL_INLINE void Store(float* to, Vec x) { _mm256_storeu_ps(to, x); }
MENDEL_INLINE Vec Same(float x) { return _mm256_set1_ps(x); }
MENDEL_INLINE Vec MultiplyAdd(Vec a, Vec b, Vec c) { return _mm256_fmadd_ps(a, b, c); }

#include "kernels/cpu/strip_kernels.inc"

}  // namespace

const StripIsa& StripAvx2() {
  static constexpr StripIsa kKernels = kIsa;
  return kKernels;
}

}  // namespace mendel::cpu
