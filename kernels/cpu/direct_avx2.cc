// Compiled with AVX2 and FMA instructions: only called on machines that have them.
#include <immintrin.h>

#include "kernels/cpu/direct_kernels.h"

#define MENDEL_INLINE __attribute__((always_inline)) inline
/// Arrays of vectors must become registers.
#if defined(__clang__)
#define MENDEL_UNROLL _Pragma("unroll")
#else
#define MENDEL_UNROLL _Pragma("GCC unroll 16")
#endif

namespace mendel::cpu {
namespace {

#include "kernels/cpu/vec_avx2.inc"

using Lanes = __m256i;
/// Positions that are computed together, for 1 and 2 vectors of output channels.
constexpr int kRowsOf[] = {0, 10, 6};
constexpr int kPositionsOf[] = {8, 7};

MENDEL_INLINE Vec LoadFirst(const float* from, int64_t count) {
  return _mm256_maskload_ps(from, _mm256_castps_si256(FirstLanes(count)));
}
MENDEL_INLINE void StoreFirst(float* to, Vec x, int64_t count) {
  _mm256_maskstore_ps(to, _mm256_castps_si256(FirstLanes(count)), x);
}
MENDEL_INLINE Lanes LoadLanes(const int32_t* from) { return _mm256_loadu_si256(reinterpret_cast<const Lanes*>(from)); }
/// Lane k gets lane lanes[k] of x.
MENDEL_INLINE Vec Pick(Vec x, Lanes lanes) { return _mm256_permutevar8x32_ps(x, lanes); }
MENDEL_INLINE void Ask(const float* line) { _mm_prefetch(reinterpret_cast<const char*>(line), _MM_HINT_T1); }

#include "kernels/cpu/direct_finish.inc"
#include "kernels/cpu/grouped_kernels.inc"
#include "kernels/cpu/pointwise_kernels.inc"

}  // namespace

const DirectIsa& DirectAvx2() {
  static constexpr DirectIsa kKernels = {kIsaName,
                                         kLanes,
                                         kPanelVectors,
                                         {0, 10, 6, 0, 0},
                                         {kPositionsOf[0], kPositionsOf[1]},
                                         &Pointwise,
                                         &Prepare,
                                         {&Grouped<kPositionsOf[0]>, &Grouped<kPositionsOf[1]>}};
  return kKernels;
}

}  // namespace mendel::cpu
