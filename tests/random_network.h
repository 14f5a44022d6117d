// Random programs for tests of the whole optimizer.
#ifndef MENDEL_TESTS_RANDOM_NETWORK_H_
#define MENDEL_TESTS_RANDOM_NETWORK_H_

#include <cstdint>
#include <functional>

#include "base/random.h"
#include "graph/graph.h"

namespace mendel {

/// Nodes that are neither Input nor Constant.
int OperatorCount(const Graph& graph);

/// A random program of at most `operators` operators. Its parts are samples of rules (so that rules
/// match), small grown programs, and single operators of the registry drawn by their own samplers.
/// A part reads the others wherever a value can be cut to the wanted type. Every value that nothing
/// reads is an output. Where `favored` is not null, a third of the parts are that operator.
Graph RandomNetwork(Rng& rng, int operators, const OpDefinition* favored = nullptr);

/// Shrinks `graph` while `fails` holds: outputs are left out, and nodes become inputs. `fails` must
/// hold for `graph`. Tries at most `attempts` programs.
Graph Shrunk(const Graph& graph, const std::function<bool(const Graph&)>& fails, int attempts);

}  // namespace mendel

#endif  // MENDEL_TESTS_RANDOM_NETWORK_H_
