// What the lowerings of our own convolution kernels share.
#ifndef MENDEL_KERNELS_CPU_OWN_LOWERING_H_
#define MENDEL_KERNELS_CPU_OWN_LOWERING_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "kernels/cpu/lowering.h"

namespace mendel::cpu {

/// Layouts of source and result. Channels-last where the source already lies so and whole vectors fit, else blocked (where parts of
/// a concatenation are computed in place).
std::pair<Layout, Layout> OwnLayouts(Lowering& lowering, ValueId src, ValueId dst, int64_t lanes);

/// One float a channel, zeros up to `floats`.
Place OwnVector(Lowering& lowering, const std::vector<double>& values, int64_t floats);

}  // namespace mendel::cpu

#endif  // MENDEL_KERNELS_CPU_OWN_LOWERING_H_
