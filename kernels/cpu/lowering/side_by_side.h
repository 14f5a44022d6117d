// Recurrences side by side. A step of a small cell is too little work for a team of threads, but
// both directions of a layer are independent. Each runs in one thread of a team of two.
#ifndef MENDEL_KERNELS_CPU_LOWERING_SIDE_BY_SIDE_H_
#define MENDEL_KERNELS_CPU_LOWERING_SIDE_BY_SIDE_H_

#include <cstdint>

#include "graph/graph.h"
#include "kernels/cpu/program.h"

namespace mendel::cpu {

/// True when loop `id` is compiled for one thread. It and the next loop, or the one before, then
/// run at once: neither needs the other, and they are about equal work. Teams of other sizes divide
/// the steps of each loop instead; no machine with more than two cores was measured.
bool RunsBesideAnotherLoop(const Graph& graph, int32_t id, int threads);

/// Joins pairs of independent steps that may run beside each other (ProgramStep::beside). Steps
/// between them that the second one needs move before both.
void JoinSideBySide(Program& program);

}  // namespace mendel::cpu

#endif  // MENDEL_KERNELS_CPU_LOWERING_SIDE_BY_SIDE_H_
