// Compiled with AVX2 and FMA instructions: only called on machines that have them.
#include <immintrin.h>

#include <cmath>

#include "kernels/cpu/kernels/winograd_kernels.h"
#include "kernels/cpu/kernels/winograd_matrices.h"
#include "kernels/cpu/memory/subnormal.h"
#include "kernels/cpu/simd/unroll.h"

namespace mendel::cpu {
namespace {

constexpr int kPanelRows = 6;

// The kernels below are written in these vectors.
// clang-format off
#include "kernels/cpu/simd/vec_avx2.inc"
// clang-format on
#include "kernels/cpu/kernels/winograd_1d.inc"
#include "kernels/cpu/kernels/winograd_filters.inc"
#include "kernels/cpu/kernels/winograd_kernels.inc"
#include "kernels/cpu/kernels/winograd_multiply.inc"

}  // namespace

const WinogradIsa& WinogradAvx2() {
  static constexpr WinogradIsa kKernels = kIsa;
  return kKernels;
}

}  // namespace mendel::cpu
