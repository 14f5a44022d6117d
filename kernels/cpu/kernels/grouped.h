// Direct convolutions whose groups have as many outputs as inputs: 1 (depthwise), 2, 4 or 8
// channels, or whole vectors. One to three spatial dimensions, any padding, stride and dilation;
// bias, residual and activation are applied in registers.
#ifndef MENDEL_KERNELS_CPU_KERNELS_GROUPED_H_
#define MENDEL_KERNELS_CPU_KERNELS_GROUPED_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include "kernels/cpu/kernels/direct_kernels.h"
#include "kernels/cpu/kernels/window_plan.h"
#include "kernels/cpu/memory/weight_view.h"

namespace mendel::cpu {

inline constexpr std::string_view kNativeGrouped = "grouped-own";

/// One convolution.
struct GroupedPlan : WindowPlan {
  int64_t channels = 1;
  int64_t inputs = 1;  ///< channels of a group
  int kernel = 0;      ///< which of the instruction set's
  std::vector<int32_t> lanes;

  int64_t Vectors() const { return (channels + isa->lanes - 1) / isa->lanes; }
  int64_t WeightFloats() const { return Vectors() * Taps() * inputs * isa->lanes; }
  int64_t ScratchBytes() const;
};

/// True when groups of `inputs` channels can be computed with vectors of `lanes`.
bool GroupsFit(int64_t inputs, int64_t lanes);
/// Fills what follows from the shape, channels and strides.
void CutGrouped(GroupedPlan& plan, int threads);

/// `weights`: channels x inputs x taps, row-major; `scale`: one factor an output channel, or empty.
/// `to` contains zeros. In the current ThreadScope.
void PackGroupedWeights(const GroupedPlan& plan, const WeightView& weights,
                        const std::vector<double>& scale, float* to);

/// Runs in the current ThreadScope. `scratch` has ScratchBytes() bytes and lies on a 64-byte
/// boundary.
void RunGrouped(const GroupedPlan& plan, const float* src, const float* weights,
                const WinogradEpilogue& epilogue, float* dst, float* scratch);

}  // namespace mendel::cpu

#endif  // MENDEL_KERNELS_CPU_KERNELS_GROUPED_H_
