// Axioms beyond congruence: true identities that random oracles cannot see, applied to both
// programs before they are compared.
//
// The list is short and each axiom has a proof sentence and a test; a wrong axiom would be a wrong
// "equivalent". Axioms that need the sign or the value of a constant apply to literals (and, in
// exact mode, to every stored float), never to symbols.
#ifndef MENDEL_VERIFIER_AXIOMS_AXIOMS_H_
#define MENDEL_VERIFIER_AXIOMS_AXIOMS_H_

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/graph.h"
#include "verifier/verifier.h"

namespace mendel {

/// kConstants: a rounded literal stands for its constant. kNumbers: a literal factor stays the
/// number that it is.
enum class LiteralFactors : uint8_t { kConstants, kNumbers };

/// The program in canonical form: the same inputs and outputs, the same function wherever it is
/// defined. Deterministic, so that a replayed certificate sees the same graphs. `used`, when given,
/// counts the applications of each axiom by name.
absl::StatusOr<Graph> Canonicalize(const Graph& graph, WeightMode weights,
                                   std::map<std::string, int>* used = nullptr,
                                   const std::set<std::string>& deciding_outputs = {},
                                   LiteralFactors factors = LiteralFactors::kConstants);

/// The program with choices of infinities in one form, of which the masks of attention are the
/// most frequent: the same function, also where values are infinite or undefined. `copies`, when
/// given, gets the value in the result by value of `graph`, where there is one.
absl::StatusOr<Graph> WithChosenInfinities(const Graph& graph, WeightMode weights,
                                           std::map<std::string, int>* used = nullptr,
                                           std::map<ValueId, ValueId>* copies = nullptr);

/// Nodes of which a comparison, a rounding, an order or an index is computed, by number: there no
/// rounded literal stands for its constant. `outputs`: names of outputs that are read so.
std::vector<bool> DecidingNodes(const Graph& graph, const std::set<std::string>& outputs = {});

/// For documentation and tests.
struct AxiomDescription {
  std::string_view name;
  std::string_view statement;  ///< "relu(c x) = c relu(x), c > 0"
  std::string_view proof;      ///< one sentence
};
/// Sorted by name.
std::span<const AxiomDescription> AllAxioms();

}  // namespace mendel

#endif  // MENDEL_VERIFIER_AXIOMS_AXIOMS_H_
