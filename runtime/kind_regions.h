// Parts of a graph within which calls of one kind leave values for each other as they are
// (Backend::KindRegions).
#ifndef MENDEL_RUNTIME_KIND_REGIONS_H_
#define MENDEL_RUNTIME_KIND_REGIONS_H_

#include <cstdint>
#include <functional>
#include <set>
#include <vector>

#include "graph/graph.h"

namespace mendel {

/// `calls` in sets: those that read what another one yields, directly or through nodes that
/// `passes` says pass values on as they lie, and those that read one value. Only reading that
/// `joins` counts. In the order of their first nodes, each set ascending.
std::vector<std::vector<int32_t>> ConnectedCalls(
    const Graph& graph, const std::set<int32_t>& calls, const std::function<bool(int32_t)>& passes,
    const std::function<bool(ValueId, int32_t reader)>& joins);

}  // namespace mendel

#endif  // MENDEL_RUNTIME_KIND_REGIONS_H_
