// Matches of a rule that are found for a whole graph at once.
#ifndef MENDEL_MUTATOR_MATCHES_BY_LAST_NODE_H_
#define MENDEL_MUTATOR_MATCHES_BY_LAST_NODE_H_

#include <cstdint>
#include <map>
#include <vector>

#include "graph/graph.h"
#include "mutator/rule.h"

namespace mendel {

using MatchesByLastNode = std::map<int32_t, std::vector<Match>>;

/// The entry `node` of `find(graph)`, which is computed once for a graph and kept for a while.
std::vector<Match> MatchesEndingAt(const Graph& graph, int32_t node,
                                   MatchesByLastNode (*find)(const Graph& graph));

}  // namespace mendel

#endif  // MENDEL_MUTATOR_MATCHES_BY_LAST_NODE_H_
