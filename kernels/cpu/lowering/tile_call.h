// Nodes as calls of tile functions (simd/tile_math.h).
#ifndef MENDEL_KERNELS_CPU_LOWERING_TILE_CALL_H_
#define MENDEL_KERNELS_CPU_LOWERING_TILE_CALL_H_

#include "graph/graph.h"
#include "kernels/cpu/kernels/elementwise.h"

namespace mendel::cpu {

/// Without registers. The function is null when there is none for the operator.
TileCall TileCallOf(const Node& node);
/// True for a Cast that does not change the number in a register.
bool KeepsNumbers(const Graph& graph, const Node& node);

}  // namespace mendel::cpu

#endif  // MENDEL_KERNELS_CPU_LOWERING_TILE_CALL_H_
