#include "kernels/cpu/kernels/lrn.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/cpu/kernels/typed.h"
#include "kernels/cpu/simd/native_isa.h"
#include "kernels/cpu/threads.h"

namespace mendel::cpu {
namespace {

#define MENDEL_EACH_ISA "kernels/cpu/kernels/lrn_kernel.inc"
#include "kernels/cpu/simd/each_isa.inc"

}  // namespace

std::unique_ptr<Kernel> MakeLrnKernel(const LrnProblem& problem) {
  return ForIsa(&baseline::Make, &avx2::Make, &avx512::Make)(problem);
}

}  // namespace mendel::cpu
