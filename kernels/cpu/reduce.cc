#include "kernels/cpu/reduce.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "kernels/cpu/log_sum_exp.h"
#include "kernels/cpu/own_isa.h"
#include "kernels/cpu/reduce_loops.h"

namespace mendel::cpu {
namespace {

#define MENDEL_EACH_ISA "kernels/cpu/reduce_kernel.inc"
#include "kernels/cpu/each_isa.inc"

}  // namespace

std::unique_ptr<Kernel> MakeReduceKernel(ReduceProblem problem) {
  return ForIsa(&baseline::Make, &avx2::Make, &avx512::Make)(std::move(problem));
}

}  // namespace mendel::cpu
