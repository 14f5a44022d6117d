// The text of a tiled kernel: a block of threads computes a tile of a product through two buffers
// of shared memory; operands are computed as they are read, and what follows the product is
// computed in registers. Both are the fusion engine's texts.
#ifndef MENDEL_KERNELS_CUDA_TILED_TILED_KERNEL_H_
#define MENDEL_KERNELS_CUDA_TILED_TILED_KERNEL_H_

#include "absl/status/statusor.h"
#include "graph/graph.h"
#include "kernels/cuda/fusion/fused_kernel.h"
#include "kernels/cuda/tiled/candidate.h"
#include "kernels/cuda/tiled/chain.h"
#include "kernels/cuda/tiled/total_kernel.h"

namespace mendel::cuda {

/// `chain` must be of `candidate`'s fusion, `divided` what DividedDepthOf says of both. A divided
/// sum's parts are what the kernel writes, in place of the result: to PartialElements elements,
/// which WriteTotalKernel's reads. Pointers must be aligned to 16 bytes; FusedKernel::lanes is the
/// elements that one access stores. Elements of f32, f16 and bf16 are summed in f32, f64 in f64 and
/// integers in 64 bits, each sum in the order of the depth; by tensor cores in groups of products
/// of one instruction, in the order of the depth. Unimplemented where a launch cannot have as many
/// blocks.
///
/// With another type in place of `float` the same text computes in that type: sums are Plus and
/// Times, and the shared memory of the launch is in proportion. Tensor cores' functions
/// (tensor_cores.h) must be declared for that type then.
absl::StatusOr<FusedKernel> WriteTiledKernel(const Graph& graph, const TiledChain& chain,
                                             const TiledCandidate& candidate,
                                             const DividedDepth& divided);

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_TILED_TILED_KERNEL_H_
