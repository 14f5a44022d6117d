// A chain kernel computes two products: a block computes a part of the first one's result into
// shared memory, and the second product reads it there. Loops, prologues and epilogues are those of
// tiled_kernel.h.
#ifndef MENDEL_KERNELS_CUDA_TILED_CHAIN_KERNEL_H_
#define MENDEL_KERNELS_CUDA_TILED_CHAIN_KERNEL_H_

#include "absl/status/statusor.h"
#include "graph/graph.h"
#include "kernels/cuda/fusion/fused_kernel.h"
#include "kernels/cuda/tiled/candidate.h"
#include "kernels/cuda/tiled/product_chain.h"

namespace mendel::cuda {

/// Writes a chain kernel as WriteTiledKernel writes others. Its errors are also those of
/// ShapeOfChain. Nothing is rounded between the products.
absl::StatusOr<FusedKernel> WriteChainKernel(const Graph& graph, const ProductChain& chain,
                                             const TiledCandidate& candidate);

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_TILED_CHAIN_KERNEL_H_
