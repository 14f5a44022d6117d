// The order of an operand's elements in memory, seen through the nodes that a kernel computes as it
// reads them.
#ifndef MENDEL_KERNELS_CUDA_TILED_OPERAND_ORDER_H_
#define MENDEL_KERNELS_CUDA_TILED_OPERAND_ORDER_H_

#include <cstdint>
#include <set>

#include "graph/graph.h"
#include "kernels/cuda/fusion/operator_text.h"
#include "kernels/cuda/tiled/candidate.h"
#include "kernels/cuda/tiled/chain.h"

namespace mendel::cuda {

/// True if elements along the last axis of `value` lie closer to each other than those along the
/// axis before it. Only Transpose, Reshape and Expand nodes among `fused` are considered. Nothing
/// depends on the result but the order in which threads read.
bool FollowsLastAxis(const Graph& graph, ValueId value, const std::set<int32_t>& fused);

/// Bytes of the widest element that nodes of `fused` read or make.
int64_t WidestElement(const Graph& graph, const std::set<int32_t>& fused);

/// The order in which threads read an operand's tile.
struct OperandOrder {
  bool by_depth = false;  ///< threads that follow one another read along the depth, else across
  int lanes = 1;          ///< elements a read, side by side in memory in that direction
  /// Asynchronous copies read the tile. The operand is then stored in the format in which it is
  /// multiplied: f32 for tensor cores of tf32, f16 and bf16 for their own. 16 bytes of it are in
  /// the order of the tile (shared_tile.h): across for threads that multiply on their own, along
  /// the depth for pairs of products, either for tf32.
  bool copied = false;
};
/// The order for `value`, the left operand of the first product or the right one of any.
OperandOrder OrderOf(const Graph& graph, const TiledChain& chain, const TiledCandidate& candidate,
                     const ProductExtents& extents, ValueId value, bool is_left);
/// True if asynchronous copies read any operand.
bool CopiesAny(const Graph& graph, const TiledChain& chain, const TiledCandidate& candidate,
               const ProductExtents& extents);

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_TILED_OPERAND_ORDER_H_
