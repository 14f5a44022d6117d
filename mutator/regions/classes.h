// Finds repeated elements: the positions along an axis at which a value has equal elements.
#ifndef MENDEL_MUTATOR_REGIONS_CLASSES_H_
#define MENDEL_MUTATOR_REGIONS_CLASSES_H_

#include <cstdint>
#include <vector>

#include "graph/graph.h"
#include "graph/positions.h"

namespace mendel {

/// For each position of an axis: the first position with equal elements, for all inputs and all
/// other coordinates. Empty: all positions may differ.
using AxisClasses = std::vector<int64_t>;
/// One AxisClasses for each axis.
using ValueClasses = std::vector<AxisClasses>;

/// Different positions along an axis of this extent.
int64_t CountClasses(const AxisClasses& classes, int64_t extent);
/// The first position equal to `position`; kAbsent is equal to itself alone.
int64_t FirstOf(const AxisClasses& classes, int64_t position);
/// The first positions of all that `positions` names, ascending, once each, without kAbsent.
Positions FirstsOf(const AxisClasses& classes, const Positions& positions);

/// Walks the graph forwards. The result is indexed by node, then by output. Stored weights count as
/// all different, literals as what they are.
std::vector<std::vector<ValueClasses>> RepeatedElements(const Graph& graph);

/// Input k where it is a stored tensor, else null.
std::vector<const Tensor*> StoredInputs(const Graph& graph, int32_t node);

}  // namespace mendel

#endif  // MENDEL_MUTATOR_REGIONS_CLASSES_H_
