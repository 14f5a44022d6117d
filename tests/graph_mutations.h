// Single faults put into programs, for tests that the verifier rejects what is wrong.
//
// Every mutation keeps the types of all values, so that a wrong program looks like a right one.
// Which nodes it can touch follows from the operators' registry: attributes, arities and types,
// never a list of operators. Some mutations are harmless; telling those apart is the tests' work.
#ifndef MENDEL_TESTS_GRAPH_MUTATIONS_H_
#define MENDEL_TESTS_GRAPH_MUTATIONS_H_

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/random.h"
#include "graph/graph.h"

namespace mendel {

/// Names of the kinds, sorted: "attribute", "axis", "bias", "box", "coefficient", ...
std::span<const std::string_view> MutationKinds();

/// One fault of `kind` at one node; the same seed makes the same fault at the same node of any
/// graph.
struct Mutation {
  std::string_view kind;
  int32_t node = 0;
  uint64_t seed = 0;
};

/// The faulty program, or nullopt when this kind does not fit the node (with this seed). The result
/// is never textually the same.
std::optional<Graph> Mutate(const Graph& graph, const Mutation& mutation);

/// A fault of `kind` at a random node, or nullopt when none was found in a few attempts. `mutation`
/// says what was done.
std::optional<Graph> RandomMutation(Rng& rng, const Graph& graph, std::string_view kind,
                                    Mutation& mutation);

}  // namespace mendel

#endif  // MENDEL_TESTS_GRAPH_MUTATIONS_H_
