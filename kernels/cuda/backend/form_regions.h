// Parts of a graph within which library calls of one form leave values for each other as they are.
#ifndef MENDEL_KERNELS_CUDA_BACKEND_FORM_REGIONS_H_
#define MENDEL_KERNELS_CUDA_BACKEND_FORM_REGIONS_H_

#include <cstdint>
#include <set>
#include <vector>

#include "graph/graph.h"

namespace mendel::cuda {

/// `calls`, nodes that libraries may compute, in sets: those that read what another one yields,
/// directly or through elementwise operators of the same shape, pools and moves (format_choice.h:
/// computed as their operands lie), and those that read one value, whose conversion they share. In
/// the order of their first nodes, each set ascending.
std::vector<std::vector<int32_t>> FormRegions(const Graph& graph, const std::set<int32_t>& calls);

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_BACKEND_FORM_REGIONS_H_
