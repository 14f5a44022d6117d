#include "kernels/cpu/kernels/channel_norm.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include "kernels/cpu/kernels/moments.h"
#include "kernels/cpu/kernels/typed.h"
#include "kernels/cpu/simd/native_isa.h"
#include "kernels/cpu/simd/unroll.h"
#include "kernels/cpu/threads.h"

namespace mendel::cpu {
namespace {

#define MENDEL_EACH_ISA "kernels/cpu/kernels/channel_norm_kernel.inc"
#include "kernels/cpu/simd/each_isa.inc"

}  // namespace

std::unique_ptr<Kernel> MakeChannelNormKernel(ChannelNormProblem problem) {
  return ForIsa(&baseline::Make, &avx2::Make, &avx512::Make)(std::move(problem));
}

int64_t ChannelNormScratch(const ChannelGeometry& geometry) {
  return 3 * geometry.images * geometry.channels * static_cast<int64_t>(sizeof(float));
}

}  // namespace mendel::cpu
