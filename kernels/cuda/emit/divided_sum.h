// Sums of few boxes divided among blocks that would be idle.
#ifndef MENDEL_KERNELS_CUDA_EMIT_DIVIDED_SUM_H_
#define MENDEL_KERNELS_CUDA_EMIT_DIVIDED_SUM_H_

#include "kernels/cuda/emit/from_graph.h"

namespace mendel::cuda {

/// Into how many parts the sums of `correction` should be divided: 1 unless its tiles are fewer
/// than the multiprocessors of the GPU that tiles are chosen for and the estimate (RooflineSeconds)
/// of both kernels, a launch each, is less than that of the one.
int PartsOf(const Correction& correction);

/// Replaces kernel `k` of `patch_kernels` by one that sums `parts` parts and one that totals them,
/// with room in scratch between them; nothing for less than two parts, or where it has been divided
/// already. The results differ by rounding only, and are the same bits every time.
void DivideSums(size_t k, int parts, PatchKernels& patch_kernels);

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_EMIT_DIVIDED_SUM_H_
