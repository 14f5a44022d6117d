// Compiled with AVX-512 instructions: only called on machines that have them.
#include <immintrin.h>

#include "kernels/cpu/winograd_kernels.h"
#include "kernels/cpu/winograd_matrices.h"

#define MENDEL_INLINE __attribute__((always_inline)) inline

namespace mendel::cpu {
namespace {

using Vec = __m512;
constexpr int kLanes = 16;
constexpr int kPanelVectors = 4;
constexpr int kPanelRows = 6;
constexpr const char* kIsaName = "avx512";

MENDEL_INLINE Vec Load(const float* from) { return _mm512_loadu_ps(from); }
MENDEL_INLINE void Store(float* to, Vec x) { _mm512_storeu_ps(to, x); }
MENDEL_INLINE Vec Same(float x) { return _mm512_set1_ps(x); }
MENDEL_INLINE Vec Zero() { return _mm512_setzero_ps(); }
MENDEL_INLINE Vec Plus(Vec a, Vec b) { return _mm512_add_ps(a, b); }
MENDEL_INLINE Vec Minus(Vec a, Vec b) { return _mm512_sub_ps(a, b); }
MENDEL_INLINE Vec Times(Vec a, Vec b) { return _mm512_mul_ps(a, b); }
MENDEL_INLINE Vec MultiplyAdd(Vec a, Vec b, Vec c) { return _mm512_fmadd_ps(a, b, c); }
/// Of two numbers; the second when either is not one. (The unmasked forms warn of uninitialised values in g++ 12, its bug 105593.)
MENDEL_INLINE Vec Largest(Vec a, Vec b) { return _mm512_maskz_max_ps(0xffff, a, b); }
MENDEL_INLINE Vec Smallest(Vec a, Vec b) { return _mm512_maskz_min_ps(0xffff, a, b); }
MENDEL_INLINE Vec Both(Vec a, Vec mask) {
  return _mm512_castsi512_ps(_mm512_and_si512(_mm512_castps_si512(a), _mm512_castps_si512(mask)));
}
MENDEL_INLINE Vec FirstLanes(int64_t count) {
  return _mm512_castsi512_ps(_mm512_maskz_set1_epi32(static_cast<__mmask16>((1u << count) - 1u), -1));
}

#include "kernels/cpu/winograd_kernels.inc"
#include "kernels/cpu/winograd_multiply.inc"

}  // namespace

const WinogradIsa& WinogradAvx512() {
  static constexpr WinogradIsa kKernels = kIsa;
  return kKernels;
}

}  // namespace mendel::cpu
