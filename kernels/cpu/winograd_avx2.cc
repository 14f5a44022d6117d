// Compiled with AVX2 and FMA instructions: only called on machines that have them.
#include <immintrin.h>

#include <cmath>

#include "kernels/cpu/unroll.h"
#include "kernels/cpu/winograd_kernels.h"
#include "kernels/cpu/winograd_matrices.h"

namespace mendel::cpu {
namespace {

constexpr int kPanelRows = 6;

#include "kernels/cpu/vec_avx2.inc"
#include "kernels/cpu/winograd_1d.inc"
#include "kernels/cpu/winograd_filters.inc"
#include "kernels/cpu/winograd_kernels.inc"
#include "kernels/cpu/winograd_multiply.inc"

}  // namespace

const WinogradIsa& WinogradAvx2() {
  static constexpr WinogradIsa kKernels = kIsa;
  return kKernels;
}

}  // namespace mendel::cpu
