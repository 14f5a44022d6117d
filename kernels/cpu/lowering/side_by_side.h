// Recurrences side by side. A step of a small cell is too little work for a team of threads, but
// both directions of a layer are independent. Each runs in one thread of a team of two.
#ifndef MENDEL_KERNELS_CPU_LOWERING_SIDE_BY_SIDE_H_
#define MENDEL_KERNELS_CPU_LOWERING_SIDE_BY_SIDE_H_

#include <cstdint>
#include <set>

#include "graph/graph.h"
#include "kernels/cpu/program.h"

namespace mendel::cpu {

/// Pairs of loops that are compiled for one thread each and run at once. The two follow each other
/// among the loops, neither needs the other, and they are about equal work. Teams of other sizes
/// divide the steps of each loop instead; no machine with more than two cores was measured.
std::set<int32_t> LoopsSideBySide(const Graph& graph, int threads);

/// Joins pairs of independent steps that may run beside each other (ProgramStep::beside). Steps
/// between them that the second one needs move before both.
void JoinSideBySide(Program& program);

}  // namespace mendel::cpu

#endif  // MENDEL_KERNELS_CPU_LOWERING_SIDE_BY_SIDE_H_
