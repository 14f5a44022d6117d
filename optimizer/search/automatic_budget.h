// The automatic budget: seconds of a search for which nobody states them.
#ifndef MENDEL_OPTIMIZER_SEARCH_AUTOMATIC_BUDGET_H_
#define MENDEL_OPTIMIZER_SEARCH_AUTOMATIC_BUDGET_H_

#include <cstddef>
#include <vector>

#include "graph/graph.h"

namespace mendel {

/// Seconds for the searches of all `graphs` together. Each graph has a constant, and a share for
/// every contraction (convolution, product of matrices: more than a few operations an element) that
/// is unlike those before it in operator, attributes and types. Equal ones are searched once, so
/// that twenty equal blocks get the time of one. A graph gets 55 at most. Graphs that take long to
/// run get more by their arithmetic: 20 seconds for 100 GFLOP, 120 at most. Less would not do for a
/// few runs of each program. The budget is a function of the graphs alone.
double AutomaticBudget(const std::vector<Graph>& graphs);

/// Seconds that certify `plan` against `original` at the most: three times what their arithmetic,
/// their traffic and their nodes take on one slow core.
double AutomaticCertifyLimit(const Graph& original, const Graph& plan);

/// Seconds of a numeric gate with `inputs` inputs at the most: three times what evaluating the
/// operators' definitions on them takes on one slow core.
double AutomaticGateLimit(const Graph& original, size_t inputs);

}  // namespace mendel

#endif  // MENDEL_OPTIMIZER_SEARCH_AUTOMATIC_BUDGET_H_
