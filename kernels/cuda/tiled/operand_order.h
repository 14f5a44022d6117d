// How the elements of an operand lie in memory, seen through the nodes that a kernel computes as it reads them.
#ifndef MENDEL_KERNELS_CUDA_TILED_OPERAND_ORDER_H_
#define MENDEL_KERNELS_CUDA_TILED_OPERAND_ORDER_H_

#include <cstdint>
#include <set>

#include "graph/graph.h"

namespace mendel::cuda {

/// Do elements along the last axis of `value` lie closer to each other than those along the axis before it? As far as Transpose,
/// Reshape and Expand nodes among `fused` say; the order in which threads read, and nothing else, depends on it.
bool FollowsLastAxis(const Graph& graph, ValueId value, const std::set<int32_t>& fused);

/// Bytes of the widest element that nodes of `fused` read or make.
int64_t WidestElement(const Graph& graph, const std::set<int32_t>& fused);

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_TILED_OPERAND_ORDER_H_
