// Index limits: the numbers that an integral graph input may contain, from the tables it indexes.
#ifndef MENDEL_GRAPH_INDEX_LIMIT_H_
#define MENDEL_GRAPH_INDEX_LIMIT_H_

#include <cstddef>
#include <cstdint>
#include <optional>

#include "graph/graph.h"

namespace mendel {

/// Extent of the smallest table that graph input number `input` (its position in graph.inputs()) or
/// a copy of its values indexes (Gather and similar operators); nullopt when it indexes nothing.
std::optional<int64_t> SmallestIndexedTable(const Graph& graph, size_t input);

}  // namespace mendel

#endif  // MENDEL_GRAPH_INDEX_LIMIT_H_
