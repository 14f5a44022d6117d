// Facts beyond congruence: true identities that random oracles cannot see, applied to both programs before they are compared.
//
// The list is short and each fact has a proof sentence and a test; a wrong fact would be a wrong "equivalent". Facts that need the
// sign or the value of a constant apply to literals (and, in exact mode, to every stored float), never to symbols.
#ifndef MENDEL_VERIFIER_FACTS_H_
#define MENDEL_VERIFIER_FACTS_H_

#include <map>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "graph/graph.h"
#include "verifier/verifier.h"

namespace mendel {

/// The program in canonical form: the same inputs and outputs, the same function wherever it is defined. Deterministic, so that a
/// replayed certificate sees the same graphs. `used`, when given, counts the applications of each fact by name.
absl::StatusOr<Graph> Canonicalise(const Graph& graph, WeightMode weights, std::map<std::string, int>* used = nullptr);

/// For documentation and tests.
struct FactDescription {
  std::string_view name;
  std::string_view statement;  ///< "relu(c x) = c relu(x), c > 0"
  std::string_view proof;      ///< one sentence
};
/// Sorted by name.
std::span<const FactDescription> AllFacts();

}  // namespace mendel

#endif  // MENDEL_VERIFIER_FACTS_H_
