// Compiled with AVX-512 and AVX512_BF16 instructions: only called on machines that have them.
#include <immintrin.h>

#include <algorithm>

#include "kernels/cpu/kernels/bf16_split.h"

namespace mendel::cpu {
namespace {

/// Up to 16 numbers.
inline void SplitLanes(const float* from, __mmask16 lanes, uint16_t* first, uint16_t* second,
                       uint16_t* low) {
  constexpr int kInfiniteOrNan = 0x99;
  const __m512 x = _mm512_maskz_loadu_ps(lanes, from);
  const __mmask16 special = _mm512_fpclass_ps_mask(x, kInfiniteOrNan);
  // The intrinsics return the second operand when either one is NaN: NaN stays.
  const auto limit = [](__m512 value, float largest) {
    return _mm512_maskz_max_ps(0xffff, _mm512_set1_ps(-largest),
                               _mm512_maskz_min_ps(0xffff, _mm512_set1_ps(largest), value));
  };
  const __m512 limited = _mm512_mask_mov_ps(limit(x, kLargestBf16), special, x);
  const __m256i high = (__m256i)_mm512_cvtneps_pbh(limited);
  const __m512 widened = _mm512_castsi512_ps(
      _mm512_maskz_slli_epi32(0xffff, _mm512_maskz_cvtepu16_epi32(0xffff, high), 16));
  const __m512 rest = limit(_mm512_sub_ps(x, widened), kLargestLow);
  const auto finite = static_cast<__mmask16>(~special);
  _mm256_mask_storeu_epi16(first, lanes, high);
  _mm256_mask_storeu_epi16(second, lanes, _mm256_maskz_mov_epi16(finite, high));
  _mm256_mask_storeu_epi16(low, lanes, (__m256i)_mm512_maskz_cvtneps_pbh(finite, rest));
}

}  // namespace

void SplitRows(const SplitPlan& plan, const float* from, int64_t begin, int64_t end, uint16_t* to) {
  constexpr int64_t kLanes = 16;
  const int64_t chunks = (plan.channels + plan.width - 1) / plan.width;
  for (int64_t row = begin; row < end; ++row) {
    const float* source =
        from + (row / plan.positions * chunks * plan.positions + row % plan.positions) * plan.width;
    uint16_t* target = to + row * 3 * plan.channels;
    for (int64_t c = 0; c < plan.channels; c += plan.width, source += plan.positions * plan.width) {
      const int64_t count = std::min(plan.width, plan.channels - c);
      for (int64_t k = 0; k < count; k += kLanes) {
        const auto lanes = static_cast<__mmask16>((1U << std::min(kLanes, count - k)) - 1U);
        uint16_t* first = target + c + k;
        SplitLanes(source + k, lanes, first, first + plan.channels, first + 2 * plan.channels);
      }
    }
  }
}

}  // namespace mendel::cpu
