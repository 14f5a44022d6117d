// Kernels of groups that transpose: through shared memory, so that both sides are read and written
// along memory.
#ifndef MENDEL_KERNELS_CUDA_FUSION_TRANSPOSITION_H_
#define MENDEL_KERNELS_CUDA_FUSION_TRANSPOSITION_H_

#include <optional>

#include "kernels/cuda/fusion/fused_kernel.h"

namespace mendel::cuda {

/// A kernel that moves squares of 32 x 32 elements of a Transpose, what is fused before it computed
/// on the way in and what is fused after it on the way out. Returns nullopt if the group's result
/// is not an elementwise function, without broadcasting, of exactly one Transpose, where that
/// undoes another one (a pool between two), if views read it elsewhere, too, if it keeps the
/// last dimension in its place, or if a side of its squares would be mostly empty.
std::optional<FusedKernel> WriteTransposition(const Graph& graph, const FusionGroup& group);

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_FUSION_TRANSPOSITION_H_
