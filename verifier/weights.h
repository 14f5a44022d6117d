// Symbolic equality says "the same program of the weights"; whether two files hold the same weights is a question of its own.
#ifndef MENDEL_VERIFIER_WEIGHTS_H_
#define MENDEL_VERIFIER_WEIGHTS_H_

#include <string>
#include <vector>

#include "graph/graph.h"

namespace mendel {

/// Names of the symbols that both graphs hold with different types or bytes, sorted.
std::vector<std::string> DifferingWeights(const Graph& a, const Graph& b);

}  // namespace mendel

#endif  // MENDEL_VERIFIER_WEIGHTS_H_
