// A subprogram key is equal for subprograms that are the same to the search: up to node names and
// the names of weights.
#ifndef MENDEL_OPTIMIZER_PROFILE_SUBPROGRAM_KEY_H_
#define MENDEL_OPTIMIZER_PROFILE_SUBPROGRAM_KEY_H_

#include <string>

#include "graph/graph.h"

namespace mendel {

/// SHA-256 of the graph's structure: operators, attributes, types, literals by content, symbolic
/// weights numbered in order of appearance. Equal keys: equal verdicts and equal times.
std::string SubprogramKey(const Graph& graph);

}  // namespace mendel

#endif  // MENDEL_OPTIMIZER_PROFILE_SUBPROGRAM_KEY_H_
