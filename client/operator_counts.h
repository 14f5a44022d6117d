// Operator counts: the nodes that a program executes, by operator.
#ifndef MENDEL_CLIENT_OPERATOR_COUNTS_H_
#define MENDEL_CLIENT_OPERATOR_COUNTS_H_

#include <cstdint>
#include <map>
#include <string>

#include "graph/graph.h"

namespace mendel {

using OperatorCounts = std::map<std::string, int64_t>;

/// Counts operators that depend on an input, with views. Arithmetic on weights is left out: it runs
/// once, when a plan is loaded.
OperatorCounts CountOperators(const Graph& graph);

int64_t Total(const OperatorCounts& counts);

}  // namespace mendel

#endif  // MENDEL_CLIENT_OPERATOR_COUNTS_H_
