// The saving of a mutant in words for users, derived from the graphs before and after, whatever the
// rule.
#ifndef MENDEL_MUTATOR_SAVING_H_
#define MENDEL_MUTATOR_SAVING_H_

#include <string>
#include <vector>

#include "graph/graph.h"
#include "mutator/rule.h"

namespace mendel {

/// Multiplications of run-time data with each other or with weights.
double RunTimeMultiplications(const Graph& graph);

/// Sentences, the most telling first: positions that are not computed, multiplications at run time,
/// operators removed and added, bytes of weights made when a plan is loaded. Empty where nothing of
/// that changes. `before` and `after` have the same inputs and outputs.
std::vector<std::string> DescribeSaving(const Graph& before, const Graph& after, const Rule& rule);

}  // namespace mendel

#endif  // MENDEL_MUTATOR_SAVING_H_
