#include "kernels/cpu/lrn.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/cpu/own_isa.h"
#include "kernels/cpu/threads.h"
#include "kernels/cpu/typed.h"

namespace mendel::cpu {
namespace {

#define MENDEL_EACH_ISA "kernels/cpu/lrn_kernel.inc"
#include "kernels/cpu/each_isa.inc"

}  // namespace

std::unique_ptr<Kernel> MakeLrnKernel(const LrnProblem& problem) {
  return ForIsa(&baseline::Make, &avx2::Make, &avx512::Make)(problem);
}

}  // namespace mendel::cpu
