// A mutant's last layout change and the correction of what it writes, as one launch whose blocks are divided between them.
#ifndef MENDEL_KERNELS_CUDA_BACKEND_MENDED_COPY_H_
#define MENDEL_KERNELS_CUDA_BACKEND_MENDED_COPY_H_

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/graph.h"
#include "kernels/cuda/backend/outline.h"
#include "kernels/cuda/emit/correction_plan.h"
#include "kernels/cuda/emit/kernel_text.h"
#include "kernels/cuda/fusion/fused_kernel.h"
#include "kernels/cuda/fusion/grouping.h"

namespace mendel::cuda {

/// Every element is held against all boxes; with more of them than this the launches stay apart.
inline constexpr size_t kMostSpared = 32;
/// What follows the name of the correction's kernel.
inline constexpr std::string_view kMendedCopy = "_and_copy";

/// The correction that takes the launch of `group` along; null where none does. The group moves elements (elementwise operators
/// among them), and what it writes is corrected in place, by one kernel that alone writes there and that none of the correction
/// reads. It is not asked to stand beside other kernels, converts no library's form, and is no large transposition, for which there
/// is a better kernel (fusion/transposition.h).
const PlannedCorrection* CorrectionOver(const Outline& outline, const FusionGroup& group);

/// Blocks of `kernel`, the correction's last one, then those of `group`, which write no element of `boxes`: each element is written
/// once, to where it belongs. The correction's text is as the emitter has written it, its entry apart. Pointers are `operands`
/// (all of the correction's but its result), the group's, the result. Errors as WriteKernel.
absl::StatusOr<FusedKernel> WriteMendedCopy(const Graph& graph, const FusionGroup& group, const std::vector<Box>& boxes,
                                            const EmittedKernel& kernel, std::span<const KernelOperand> operands);

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_BACKEND_MENDED_COPY_H_
