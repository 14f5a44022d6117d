// Compiled with AVX-512 instructions: only called on machines that have them.
#include <immintrin.h>

#include <algorithm>

#include "kernels/cpu/strip_kernels.h"

#define MENDEL_INLINE __attribute__((always_inline)) inline

namespace mendel::cpu {
namespace {

using Vec = __m512;
constexpr int kLanes = 16;
constexpr int kPanelVectors = 4;
constexpr const char* kIsaName = "avx512";

MENDEL_INLINE Vec Load(const float* from) { return _mm512_loadu_ps(from); }
MENDEL_INLINE void Store(float* to, Vec x) { _mm512_storeu_ps(to, x); }
MENDEL_INLINE Vec Same(float x) { return _mm512_set1_ps(x); }
MENDEL_INLINE Vec MultiplyAdd(Vec a, Vec b, Vec c) { return _mm512_fmadd_ps(a, b, c); }

#include "kernels/cpu/strip_kernels.inc"

}  // namespace

const StripIsa& StripAvx512() {
  static constexpr StripIsa kKernels = kIsa;
  return kKernels;
}

}  // namespace mendel::cpu
