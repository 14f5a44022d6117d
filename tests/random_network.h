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

/// A program of at most `operators` operators: samples of rules (so that rules match), small grown
/// programs and single operators drawn from the whole registry by their own samplers, wired into
/// each other wherever a value can be cut to the type that is wanted. Every value that nothing
/// reads is an output. Weights, literals and inputs at random. Where `favored` is not null, a third
/// of the programs' parts are this operator.
Graph RandomNetwork(Rng& rng, int operators, const OpDefinition* favored = nullptr);

/// The smallest program that can be made of `graph` by leaving out outputs and putting inputs in
/// nodes' places while `fails` holds, which it must for `graph`. At most `attempts` programs are
/// tried.
Graph Shrunk(const Graph& graph, const std::function<bool(const Graph&)>& fails, int attempts);

}  // namespace mendel

#endif  // MENDEL_TESTS_RANDOM_NETWORK_H_
