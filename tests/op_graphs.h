// Small programs around one operator each, from the operators' own samplers.
#ifndef MENDEL_TESTS_OP_GRAPHS_H_
#define MENDEL_TESTS_OP_GRAPHS_H_

#include <vector>

#include "base/random.h"
#include "graph/graph.h"

namespace mendel {

/// Operators with a sampler.
const std::vector<const OpDefinition*>& SampledOps();

/// One node of `op` (which must have a sampler) whose operands are inputs, weights and literals at
/// random - indices always literals - now and then followed by one more operator. All outputs are
/// outputs of the graph.
Graph RandomOpGraph(Rng& rng, const OpDefinition& op);

}  // namespace mendel

#endif  // MENDEL_TESTS_OP_GRAPHS_H_
