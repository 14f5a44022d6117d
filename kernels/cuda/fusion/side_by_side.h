// Horizontal fusion: small elementwise kernels that need not wait for each other as one kernel,
// whose blocks are divided among them.
#ifndef MENDEL_KERNELS_CUDA_FUSION_SIDE_BY_SIDE_H_
#define MENDEL_KERNELS_CUDA_FUSION_SIDE_BY_SIDE_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/status/statusor.h"
#include "graph/graph.h"
#include "kernels/cuda/fusion/fused_kernel.h"
#include "kernels/cuda/fusion/grouping.h"

namespace mendel::cuda {

/// Limits of a fused kernel: larger kernels fill the device alone, and more of them make its text
/// long.
inline constexpr int64_t kMostFusedElements = 1 << 16;
inline constexpr size_t kMostFusedKernels = 8;

/// True for a group of small results that only reads elements and moves them, where another kernel
/// may be fused horizontally with it.
bool MayFuseHorizontally(const Graph& graph, const FusionGroup& group);

/// One kernel of `groups`, any shapes and dtypes, each of which may be fused horizontally with
/// others and reads no other's result. Its pointers are the operands of all, group by group, then
/// the results. Errors as WriteKernel.
absl::StatusOr<FusedKernel> WriteSideBySide(const Graph& graph,
                                            std::span<const FusionGroup> groups);

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_FUSION_SIDE_BY_SIDE_H_
