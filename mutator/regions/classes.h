// The analysis of repeated elements: along which axes, at which positions, a value equals itself.
#ifndef MENDEL_MUTATOR_REGIONS_CLASSES_H_
#define MENDEL_MUTATOR_REGIONS_CLASSES_H_

#include <cstdint>
#include <vector>

#include "graph/graph.h"
#include "graph/positions.h"

namespace mendel {

/// Classes of one axis: the first position at which the value is the same for all inputs, whatever
/// the other coordinates. Empty: all positions may differ.
using AxisClasses = std::vector<int64_t>;
/// One an axis.
using ValueClasses = std::vector<AxisClasses>;

/// Different positions along an axis of this extent.
int64_t CountClasses(const AxisClasses& classes, int64_t extent);
/// The first position equal to `position`; kAbsent is equal to itself alone.
int64_t FirstOf(const AxisClasses& classes, int64_t position);
/// The first positions of all that `positions` names, ascending, once each, without kAbsent.
Positions FirstsOf(const AxisClasses& classes, const Positions& positions);

/// Forwards over the whole graph: [node][output]. Stored weights count as all different, literals
/// as what they are.
std::vector<std::vector<ValueClasses>> RepeatedElements(const Graph& graph);

/// Input k where it is a stored tensor, else null.
std::vector<const Tensor*> StoredInputs(const Graph& graph, int32_t node);

}  // namespace mendel

#endif  // MENDEL_MUTATOR_REGIONS_CLASSES_H_
