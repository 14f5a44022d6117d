// Which numbers an integral graph input may hold, from the tables that it indexes.
#ifndef MENDEL_GRAPH_INDEX_LIMIT_H_
#define MENDEL_GRAPH_INDEX_LIMIT_H_

#include <cstddef>
#include <cstdint>
#include <optional>

#include "graph/graph.h"

namespace mendel {

/// Extent of the smallest table that graph input number `input` (its position in graph.inputs()), or a value copied from it,
/// indexes (Gather and its kin); nullopt when it indexes nothing.
std::optional<int64_t> SmallestIndexedTable(const Graph& graph, size_t input);

}  // namespace mendel

#endif  // MENDEL_GRAPH_INDEX_LIMIT_H_
