// How long a search should take when nobody says so.
#ifndef MENDEL_OPTIMIZER_AUTOMATIC_BUDGET_H_
#define MENDEL_OPTIMIZER_AUTOMATIC_BUDGET_H_

#include <vector>

#include "graph/graph.h"

namespace mendel {

/// Seconds for the searches of all `graphs` together: for each a constant, and a share for every contraction (convolution, product
/// of matrices: more than a few operations an element) that is unlike those before it in operator, attributes and types. Equal ones
/// are searched once, so that twenty equal blocks get the time of one. At most 55 a graph. What takes long to run gets more by its
/// arithmetic, 20 seconds for 100 GFLOP, at most 120 a graph: less would not do for a few runs of each program. A function of the
/// graphs alone.
double AutomaticBudget(const std::vector<Graph>& graphs);

}  // namespace mendel

#endif  // MENDEL_OPTIMIZER_AUTOMATIC_BUDGET_H_
