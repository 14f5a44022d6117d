// The kernel of one fusion group.
#ifndef MENDEL_KERNELS_CUDA_FUSION_FUSED_KERNEL_H_
#define MENDEL_KERNELS_CUDA_FUSION_FUSED_KERNEL_H_

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "kernels/cuda/emit/kernel_text.h"
#include "kernels/cuda/fusion/grouping.h"
#include "kernels/cuda/fusion/kernel_code.h"

namespace mendel::cuda {

struct FusedKernel {
  std::string name;  ///< of the entry, in C linkage: a hash of the text
  std::string text;  ///< needs PreambleText() before it
  LaunchShape launch;
  std::vector<KernelOperand> operands;  ///< what its pointers refer to; one more follows, to the result
  int lanes = 1;                        ///< elements a thread computes, by vector access where more than one
};

/// Pointers must be aligned to 16 bytes. Unimplemented names the node when the kernel would take more pointers than a launch may.
absl::StatusOr<FusedKernel> WriteKernel(const Graph& graph, const FusionGroup& group);

/// The type of indices in a kernel of these nodes: "int", or "long long" where a tensor has too many elements for it.
std::string IndexTypeOf(const Graph& graph, const std::set<int32_t>& nodes);
/// Text, name and launch around the statements of `code`, which it takes.
FusedKernel FinishedKernel(const Graph& graph, ValueId result, KernelCode& code, int64_t blocks, int threads, unsigned shared);

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_FUSION_FUSED_KERNEL_H_
