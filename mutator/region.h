// Subprograms that a change of layout carries along: convolutions and pools with whatever
// elementwise operators, residual adds and concatenations of channels stand between and behind
// them.
#ifndef MENDEL_MUTATOR_REGION_H_
#define MENDEL_MUTATOR_REGION_H_

#include <vector>

#include "graph/graph.h"
#include "graph/window.h"

namespace mendel {

/// A convolution with constant weights, a max pool or an average pool (extents rounded down): it
/// moves a window over space.
bool IsWindowNode(const Graph& graph, int32_t node);
/// Elementwise in operands of the result's shape and constants that do not vary over batch or
/// space, or a concatenation of channels: it commutes with every rearrangement of batch and space.
bool RidesAlong(const Graph& graph, int32_t node);
/// Windows of a node that IsWindowNode accepts.
std::vector<Window> WindowsOfNode(const Graph& graph, int32_t node);

/// Regions that end with `node`, each nodes ascending: from the one with a single window node to
/// the one with `max_windows`, the number doubling, without repetition. First those in which every
/// value but the last is read by the region only; then those of several outputs: values may also be
/// outputs of the graph or read by operators that no region holds, and whatever else of a region's
/// kind reads the region alone is in it too. Empty when `node` does not end one, or an elementwise
/// operator behind it belongs to it.
std::vector<std::vector<int32_t>> RegionsEndingAt(const Graph& graph, int32_t node,
                                                  int max_windows);

}  // namespace mendel

#endif  // MENDEL_MUTATOR_REGION_H_
