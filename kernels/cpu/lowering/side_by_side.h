// Recurrences side by side: a step of a small cell is too little work for a team of threads, but
// both directions of a layer, or two streams, are independent. Each runs in one thread of the team.
#ifndef MENDEL_KERNELS_CPU_LOWERING_SIDE_BY_SIDE_H_
#define MENDEL_KERNELS_CPU_LOWERING_SIDE_BY_SIDE_H_

#include <cstdint>

#include "graph/graph.h"
#include "kernels/cpu/program.h"

namespace mendel::cpu {

/// True when loop `id` is compiled for one thread, because another loop of the graph neither needs
/// it nor is needed by it, and a step of each is small.
bool RunsBesideAnotherLoop(const Graph& graph, int32_t id, int threads);

/// Joins pairs of independent steps that may run beside each other (ProgramStep::beside). Steps
/// between them that the second one needs move before both.
void JoinSideBySide(Program& program);

}  // namespace mendel::cpu

#endif  // MENDEL_KERNELS_CPU_LOWERING_SIDE_BY_SIDE_H_
