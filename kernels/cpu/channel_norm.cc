#include "kernels/cpu/channel_norm.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include "kernels/cpu/moments.h"
#include "kernels/cpu/own_isa.h"
#include "kernels/cpu/threads.h"
#include "kernels/cpu/typed.h"
#include "kernels/cpu/unroll.h"

namespace mendel::cpu {
namespace {

#define MENDEL_EACH_ISA "kernels/cpu/channel_norm_kernel.inc"
#include "kernels/cpu/each_isa.inc"

}  // namespace

std::unique_ptr<Kernel> MakeChannelNormKernel(ChannelNormProblem problem) {
  return ForIsa(&baseline::Make, &avx2::Make, &avx512::Make)(std::move(problem));
}

int64_t ChannelNormScratch(const ChannelGeometry& geometry) {
  return 3 * geometry.images * geometry.channels * static_cast<int64_t>(sizeof(float));
}

}  // namespace mendel::cpu
