// Symbolic equality says "the same program of the weights"; whether two files hold the same weights
// is a question of its own.
#ifndef MENDEL_VERIFIER_WEIGHTS_WEIGHTS_H_
#define MENDEL_VERIFIER_WEIGHTS_WEIGHTS_H_

#include <string>
#include <vector>

#include "graph/graph.h"
#include "verifier/compare.h"

namespace mendel {

/// Symbols that both graphs hold with different types or bytes, sorted by name. Of different types
/// all elements differ.
std::vector<WeightDifference> WeightDifferences(const Graph& a, const Graph& b);

/// Their names.
std::vector<std::string> DifferingWeights(const Graph& a, const Graph& b);

}  // namespace mendel

#endif  // MENDEL_VERIFIER_WEIGHTS_WEIGHTS_H_
