#include "kernels/cpu/kernels/reduce.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "kernels/cpu/kernels/log_sum_exp.h"
#include "kernels/cpu/kernels/reduce_loops.h"
#include "kernels/cpu/simd/native_isa.h"

namespace mendel::cpu {
namespace {

#define MENDEL_EACH_ISA "kernels/cpu/kernels/reduce_kernel.inc"
#include "kernels/cpu/simd/each_isa.inc"

}  // namespace

std::unique_ptr<Kernel> MakeReduceKernel(ReduceProblem problem) {
  return ForIsa(&baseline::Make, &avx2::Make, &avx512::Make)(std::move(problem));
}

}  // namespace mendel::cpu
