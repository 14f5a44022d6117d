// Operators that work in any layout: on operands whose axes are in another order they compute the
// same in that order.
#ifndef MENDEL_MUTATOR_ANY_LAYOUT_H_
#define MENDEL_MUTATOR_ANY_LAYOUT_H_

#include <cstdint>

#include "graph/graph.h"

namespace mendel {

/// Elementwise operators, Concat, operators along one axis and reductions, on weights and on
/// operands of one rank.
bool WorksInAnyLayout(const Graph& graph, int32_t id);

/// A reduction that leaves axes out: its result is in no layout.
bool EndsLayout(const Node& node);

/// The attributes of `node` with axes of a result of Transpose{perm} as those of its operand.
Attributes MovedAttributes(const Node& node, const Ints& perm);

/// The order of the axes that a reduction keeps, when it reads the operand of Transpose{perm}
/// instead of its result: Transpose{order} of the new result is the old one.
Ints KeptOrder(const Node& reduction, const Ints& perm);

}  // namespace mendel

#endif  // MENDEL_MUTATOR_ANY_LAYOUT_H_
