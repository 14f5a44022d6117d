// Compiled with AVX2 and FMA instructions: only called on machines that have them.
#include <immintrin.h>

#include "kernels/cpu/kernels/resample_kernels.h"
#include "kernels/cpu/simd/unroll.h"

namespace mendel::cpu {
namespace {

// The permutations are written over the vectors.
// clang-format off
#include "kernels/cpu/simd/vec_avx2.inc"
#include "kernels/cpu/simd/vec_lanes_avx2.inc"
// clang-format on

/// Loads a vector, or its first `part` lanes unless `kWhole`.
template <bool kWhole>
MENDEL_INLINE Vec LoadPart(const float* from, int64_t part) {
  if constexpr (kWhole) return Load(from);
  return LoadFirst(from, part);
}

/// `kTaps`: those of `sums`; 0: as many as there are.
template <bool kWhole, int kTaps>
MENDEL_INLINE Vec SumOfRows(const RowSums& sums, int64_t row, int64_t at, int64_t part) {
  const int64_t taps = kTaps == 0 ? sums.taps : kTaps;
  const int64_t* const position = sums.position + row * taps;
  const float* const factor = sums.factor + row * taps;
  Vec sum =
      Times(Same(factor[0]), LoadPart<kWhole>(sums.from + position[0] * sums.step + at, part));
  MENDEL_UNROLL
  for (int64_t k = 1; k < taps; ++k) {
    sum = MultiplyAdd(Same(factor[k]),
                      LoadPart<kWhole>(sums.from + position[k] * sums.step + at, part), sum);
  }
  return sum;
}

template <int kTaps>
MENDEL_INLINE void BlendRow(const RowSums& sums, int64_t inner, float* to) {
  int64_t j = 0;
  for (; j + kLanes <= inner; j += kLanes)
    Store(to + j, SumOfRows<true, kTaps>(sums, 0, j, kLanes));
  if (j < inner) StoreFirst(to + j, SumOfRows<false, kTaps>(sums, 0, j, inner - j), inner - j);
}

void Blend(const RowSums& sums, int64_t inner, float* to) {
  if (sums.taps == 2) return BlendRow<2>(sums, inner, to);
  BlendRow<0>(sums, inner, to);
}

/// Rows side by side, so that a table is loaded once for all of them. Their vectors are not written
/// in the order in which they lie, which the processor does not predict: the vectors of two blocks
/// later are prefetched in that order. `kTaps`: those of the plan and of the sums; 0: as many as
/// there are.
template <int kRows, bool kWhole, int kTaps>
MENDEL_INLINE void PickBlock(const LanePlan& plan, const RowSums& sums, float* to,
                             int64_t to_step) {
  const int64_t taps = kTaps == 0 ? plan.taps : kTaps;
  const LaneTable* table = plan.tables;
  const float* ahead = to + 2 * kRows * to_step;
  for (int64_t g = 0; g < plan.count; ++g, to += kLanes, table += taps) {
    const LaneGroup group = plan.groups[g];
    Vec x[kRows], sum[kRows];
    MENDEL_UNROLL
    for (int r = 0; r < kRows; ++r) {
      x[r] = SumOfRows<kWhole, kTaps>(sums, r, group.first, plan.in);
      sum[r] = Times(Load(table->factor), Pick(x[r], LoadLanes(table->lane)));
    }
    MENDEL_UNROLL
    for (int64_t k = 1; k < taps; ++k) {
      MENDEL_UNROLL
      for (int r = 0; r < kRows; ++r) {
        sum[r] = MultiplyAdd(Load(table[k].factor), Pick(x[r], LoadLanes(table[k].lane)), sum[r]);
      }
    }
    MENDEL_UNROLL
    for (int r = 0; r < kRows; ++r, ahead += kLanes) {
      __builtin_prefetch(ahead, 1);
      if (group.count == kLanes) {
        Store(to + r * to_step, sum[r]);
      } else {
        StoreFirst(to + r * to_step, sum[r], group.count);
      }
    }
  }
}

template <bool kWhole, int kTaps>
void PickRows(const LanePlan& plan, const RowSums& sums, int64_t rows, float* to, int64_t to_step) {
  constexpr int kTogether = kTaps == 0 ? 1 : 4;
  for (int64_t row = 0; row < rows;) {
    const RowSums from_here{sums.from, sums.step, sums.position + row * sums.taps,
                            sums.factor + row * sums.taps, sums.taps};
    const bool together = rows - row >= kTogether;
    if (together) {
      PickBlock<kTogether, kWhole, kTaps>(plan, from_here, to + row * to_step, to_step);
    } else {
      PickBlock<1, kWhole, kTaps>(plan, from_here, to + row * to_step, to_step);
    }
    row += together ? kTogether : 1;
  }
}

void PickAll(const LanePlan& plan, const RowSums& sums, int64_t rows, float* to, int64_t to_step) {
  if (plan.in < kLanes) return PickRows<false, 0>(plan, sums, rows, to, to_step);
  if (plan.taps == 1 && sums.taps == 1)
    return PickRows<true, 1>(plan, sums, rows, to, to_step);  // nearest
  if (plan.taps == 2 && sums.taps == 2)
    return PickRows<true, 2>(plan, sums, rows, to, to_step);  // linear
  PickRows<true, 0>(plan, sums, rows, to, to_step);
}

}  // namespace

const ResampleIsa& ResampleAvx2() {
  static constexpr ResampleIsa kKernels{kLanes, &Blend, &PickAll};
  return kKernels;
}

}  // namespace mendel::cpu
