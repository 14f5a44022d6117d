// The analysis of known zeros: along which axes, at which positions, a value is zero for every
// input; and what a sum over products need not read because of that.
#ifndef MENDEL_MUTATOR_REGIONS_ZEROS_H_
#define MENDEL_MUTATOR_REGIONS_ZEROS_H_

#include <cstddef>
#include <utility>
#include <vector>

#include "graph/graph.h"

namespace mendel {

/// An entry a position of one axis: all elements there are zero. Empty: no position is known.
using AxisZeros = std::vector<bool>;
/// One an axis.
using ValueZeros = std::vector<AxisZeros>;

/// Forwards over the whole graph: [node][output]. Stored weights count as not zero, literals as
/// what they are. Holds where what meets a zero is finite.
std::vector<std::vector<ValueZeros>> ZeroElements(const Graph& graph);
/// True where some position of some value is known to be zero.
bool HasKnownZeros(const Graph& graph);

/// Axes of operands (input, axis) over which one sum runs: their extents are equal, and a position
/// may be left out of all at once. One entry a sum; none of operators that are no sum of products.
using SumAxes = std::vector<std::pair<size_t, size_t>>;
std::vector<SumAxes> SumsOf(const Graph& graph, const Node& node);

}  // namespace mendel

#endif  // MENDEL_MUTATOR_REGIONS_ZEROS_H_
