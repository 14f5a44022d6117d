// Compiled with AVX-512 instructions: only called on machines that have them.
#include <immintrin.h>

#include "kernels/cpu/kernels/direct_kernels.h"
#include "kernels/cpu/simd/unroll.h"

namespace mendel::cpu {
namespace {

// The permutations are written over the vectors.
// clang-format off
#include "kernels/cpu/simd/vec_avx512.inc"
#include "kernels/cpu/simd/vec_lanes_avx512.inc"
// clang-format on

/// kRowsOf[v] positions are computed together with v vectors of output channels (1 to 4).
constexpr int kRowsOf[] = {0, 12, 12, 8, 6};
constexpr int kPositionsOf[] = {14, 7};
/// Tile of outputs times two vectors of channels, with two vectors of weights and one of inputs: it
/// fills the registers.
constexpr int kTilePositions = 14;

MENDEL_INLINE float SumOf(Vec x) {
  const __m256 wide = _mm256_add_ps(_mm512_maskz_extractf32x8_ps(0xff, x, 0),
                                    _mm512_maskz_extractf32x8_ps(0xff, x, 1));
  __m128 y = _mm_add_ps(_mm256_castps256_ps128(wide), _mm256_extractf128_ps(wide, 1));
  y = _mm_add_ps(y, _mm_movehl_ps(y, y));
  return _mm_cvtss_f32(_mm_add_ss(y, _mm_movehdup_ps(y)));
}
MENDEL_INLINE float LargestOf(Vec x) {
  const __m256 wide = _mm256_max_ps(_mm512_maskz_extractf32x8_ps(0xff, x, 0),
                                    _mm512_maskz_extractf32x8_ps(0xff, x, 1));
  __m128 y = _mm_max_ps(_mm256_castps256_ps128(wide), _mm256_extractf128_ps(wide, 1));
  y = _mm_max_ps(y, _mm_movehl_ps(y, y));
  return _mm_cvtss_f32(_mm_max_ss(y, _mm_movehdup_ps(y)));
}
/// Flags contain a bit for each lane. LoadFlags reads the first `count` bytes, which are Booleans.
using Flags = __mmask16;
MENDEL_INLINE Flags LoadFlags(const uint8_t* from, int64_t count) {
  const __m128i bytes = _mm_maskz_loadu_epi8(static_cast<__mmask16>((1u << count) - 1u), from);
  return _mm_test_epi8_mask(bytes, bytes);
}
MENDEL_INLINE Flags SameFlags(bool x) { return x ? 0xffff : 0; }
MENDEL_INLINE Vec Select(Flags flags, Vec yes, Vec no) {
  return _mm512_mask_blend_ps(flags, no, yes);
}

#include "kernels/cpu/kernels/direct_kernels.inc"

}  // namespace

const DirectIsa& DirectAvx512() {
  static constexpr DirectIsa kKernels = kIsa;
  return kKernels;
}

}  // namespace mendel::cpu
