// A tiled product's sums, divided among blocks, and the kernel that totals their parts.
#ifndef MENDEL_KERNELS_CUDA_TILED_TOTAL_KERNEL_H_
#define MENDEL_KERNELS_CUDA_TILED_TOTAL_KERNEL_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "graph/graph.h"
#include "kernels/cuda/fusion/fused_kernel.h"
#include "kernels/cuda/fusion/operator_text.h"
#include "kernels/cuda/tiled/candidate.h"
#include "kernels/cuda/tiled/chain.h"

namespace mendel::cuda {

/// A divided depth splits the depth of a product into parts. Each part has whole steps of the
/// tile's depth, the last one has the rest.
struct DividedDepth {
  int64_t parts = 1;
  int64_t products = 0;  ///< products of a sum, in each part but the last
};
/// Divides as `candidate` says, or into fewer parts if the last ones would be empty.
/// InvalidArgument if the product has fewer steps than the candidate has parts.
absl::StatusOr<DividedDepth> DividedDepthOf(const TiledCandidate& candidate,
                                            const ProductExtents& extents);

/// Elements, in RealName of the product's dtype, that the parts of all sums take: for each product
/// of the chain and each part the sums of all elements of the result, by batch, row and column.
int64_t PartialElements(const TiledChain& chain, const ProductExtents& extents,
                        const DividedDepth& divided);

/// The kernel that adds the parts of each sum, always in their order, and computes what follows the
/// product. Its pointers are its operands, the parts (`parts` in the text) and the result.
/// Unimplemented where a launch cannot have as many blocks.
absl::StatusOr<FusedKernel> WriteTotalKernel(const Graph& graph, const TiledChain& chain,
                                             const DividedDepth& divided);

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_TILED_TOTAL_KERNEL_H_
