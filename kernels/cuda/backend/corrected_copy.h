// A corrected copy is one launch of a mutant's last layout change and of the correction of its
// result. Its blocks are divided between the two.
#ifndef MENDEL_KERNELS_CUDA_BACKEND_CORRECTED_COPY_H_
#define MENDEL_KERNELS_CUDA_BACKEND_CORRECTED_COPY_H_

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/graph.h"
#include "kernels/cuda/backend/partition.h"
#include "kernels/cuda/emit/correction_plan.h"
#include "kernels/cuda/emit/kernel_text.h"
#include "kernels/cuda/fusion/fused_kernel.h"
#include "kernels/cuda/fusion/grouping.h"

namespace mendel::cuda {

/// The most boxes of a corrected copy, since every element is compared with all of them.
inline constexpr size_t kMostSpared = 32;
/// The kernel's name is the name of the correction's kernel and this suffix.
inline constexpr std::string_view kCorrectedCopy = "_and_copy";

/// The correction that shares the launch of `group`; null where none does. The group moves elements
/// (elementwise operators among them), and one kernel alone corrects its result in place. No kernel
/// of the correction reads that result. The group is not meant for horizontal fusion and converts
/// no library's format. It is no large transposition, which has a better kernel
/// (fusion/transposition.h).
const PlannedCorrection* CorrectionOver(const Partition& partition, const FusionGroup& group);

/// The kernel's blocks are those of `kernel`, the correction's last one, then those of `group`,
/// which write no element of `boxes`. Each element is thus written once. The correction's text is
/// the emitter's but for its entry. The pointers are `operands` (the correction's but for its
/// result), the group's, and the result. Errors are those of WriteKernel.
absl::StatusOr<FusedKernel> WriteCorrectedCopy(const Graph& graph, const FusionGroup& group,
                                               const std::vector<Box>& boxes,
                                               const EmittedKernel& kernel,
                                               std::span<const KernelOperand> operands);

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_BACKEND_CORRECTED_COPY_H_
