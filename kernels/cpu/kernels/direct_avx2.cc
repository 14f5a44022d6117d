// Compiled with AVX2 and FMA instructions: only called on machines that have them.
#include <immintrin.h>

#include "kernels/cpu/kernels/direct_kernels.h"
#include "kernels/cpu/simd/unroll.h"

namespace mendel::cpu {
namespace {

// The permutations are written over the vectors.
// clang-format off
#include "kernels/cpu/simd/vec_avx2.inc"
#include "kernels/cpu/simd/vec_lanes_avx2.inc"
// clang-format on

/// Positions that are computed together, for 1 and 2 vectors of output channels.
constexpr int kRowsOf[] = {0, 10, 6, 0, 0};
constexpr int kPositionsOf[] = {8, 7};
/// Tile of outputs times two vectors of channels, with two vectors of weights and one of inputs: it
/// fills the registers.
constexpr int kTilePositions = 6;

MENDEL_INLINE float SumOf(Vec x) {
  __m128 y = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
  y = _mm_add_ps(y, _mm_movehl_ps(y, y));
  return _mm_cvtss_f32(_mm_add_ss(y, _mm_movehdup_ps(y)));
}
MENDEL_INLINE float LargestOf(Vec x) {
  __m128 y = _mm_max_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
  y = _mm_max_ps(y, _mm_movehl_ps(y, y));
  return _mm_cvtss_f32(_mm_max_ss(y, _mm_movehdup_ps(y)));
}
/// Flags contain a mask for each lane. LoadFlags reads the first `count` bytes, which are Booleans.
using Flags = Vec;
MENDEL_INLINE Flags LoadFlags(const uint8_t* from, int64_t count) {
  int64_t bytes = 0;
  __builtin_memcpy(&bytes, from, static_cast<size_t>(count < kLanes ? count : kLanes));
  return _mm256_castsi256_ps(
      _mm256_cmpgt_epi32(_mm256_cvtepu8_epi32(_mm_cvtsi64_si128(bytes)), _mm256_setzero_si256()));
}
MENDEL_INLINE Flags SameFlags(bool x) { return FirstLanes(x ? kLanes : 0); }
MENDEL_INLINE Vec Select(Flags flags, Vec yes, Vec no) { return _mm256_blendv_ps(no, yes, flags); }

#include "kernels/cpu/kernels/direct_kernels.inc"

}  // namespace

const DirectIsa& DirectAvx2() {
  static constexpr DirectIsa kKernels = kIsa;
  return kKernels;
}

}  // namespace mendel::cpu
