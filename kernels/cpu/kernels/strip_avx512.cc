// Compiled with AVX-512 instructions: only called on machines that have them.
#include <immintrin.h>

#include <algorithm>

#include "kernels/cpu/kernels/strip_kernels.h"

namespace mendel::cpu {
namespace {

// The kernels are written over the vectors.
// clang-format off
#include "kernels/cpu/simd/vec_avx512.inc"
#include "kernels/cpu/kernels/strip_kernels.inc"
// clang-format on

}  // namespace

const StripIsa& StripAvx512() {
  static constexpr StripIsa kKernels = kIsa;
  return kKernels;
}

}  // namespace mendel::cpu
