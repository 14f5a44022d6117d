// Compiled with AVX2 and FMA instructions: only called on machines that have them.
#include <immintrin.h>

#include "kernels/cpu/resample_kernels.h"
#include "kernels/cpu/unroll.h"

namespace mendel::cpu {
namespace {

// The kernels are written over the vectors.
// clang-format off
#include "kernels/cpu/vec_avx2.inc"
#include "kernels/cpu/vec_lanes_avx2.inc"
#include "kernels/cpu/resample_kernels.inc"
// clang-format on

}  // namespace

const ResampleIsa& ResampleAvx2() {
  static constexpr ResampleIsa kKernels = kIsa;
  return kKernels;
}

}  // namespace mendel::cpu
