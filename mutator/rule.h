// A rewrite rule is one value registered by its file mutator/rules/<rule>.cc. The verifier checks
// whatever the rule claims.
#ifndef MENDEL_MUTATOR_RULE_H_
#define MENDEL_MUTATOR_RULE_H_

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/random.h"
#include "graph/graph.h"
#include "graph/rewrite.h"
#include "mutator/predictor.h"

namespace mendel {

/// A rule's claim. kExact: its mutants are equal everywhere; one that is not is an internal error.
/// kPartial: its mutants may differ in boxes, which are corrected.
enum class Claim { kExact, kPartial };
std::string_view ClaimName(Claim claim);

/// kNormalize: applied wherever it matches before the search, by baseline and plan alike
/// (batch-norm folding). kSearch: an alternative to be measured.
enum class Stage { kNormalize, kSearch };

/// One place where a rule applies: nodes of the graph (they form the subprogram) and the rule's own
/// choices (factor, axis).
struct Match {
  std::vector<int32_t> nodes;
  std::map<std::string, int64_t> choices;
};

struct Rule {
  std::string_view name;    ///< the file's stem
  std::string_view family;  ///< what it moves: "batch and space", "dilation and stride", "kernel
                            ///< shape", "groups", "sharing", ..
  std::string_view before;  ///< algebra, e.g. "Conv(x, w, dilation d)"
  std::string_view after;
  std::string_view precondition;
  std::string_view loses_when;
  /// The reason why a mutant computes a part only: "no output reads the rest" (saving.h).
  std::string_view because;
  Claim claim = Claim::kExact;
  Stage stage = Stage::kSearch;
  /// Matches on what stored weights are, where they are literals; such mutants hold for those
  /// numbers only.
  bool reads_values = false;

  /// All places whose last node (highest id) is `node`, with every choice worth trying. Pure;
  /// cheap. `predictor`: the costs by which derived choices are ranked.
  std::vector<Match> (*match)(const Graph& graph, int32_t node,
                              const Predictor& predictor) = nullptr;
  /// The mutant of the extracted subprogram (graph/rewrite.h: inputs in0.., outputs out0..): same
  /// inputs and outputs. FailedPrecondition when the match turns out not to apply. `predictor`: of
  /// the call that found the match.
  absl::StatusOr<Graph> (*apply)(const Graph& subprogram, const Match& match,
                                 const Predictor& predictor) = nullptr;
  /// Partial rules: boxes of each output of the extracted subprogram in which its mutant may
  /// differ, exactly those where it does for generic weights (they may overlap). Null for exact
  /// rules. Only the verifier's boxes are ever corrected.
  absl::StatusOr<std::vector<std::vector<Box>>> (*wrong)(const Graph& subprogram,
                                                         const Match& match) = nullptr;
  /// A random small graph on which the rule matches somewhere; for the registry-driven conformance
  /// test.
  absl::StatusOr<Graph> (*sample)(Rng& rng) = nullptr;
};

/// All rules sorted by name; null when there is none of this name.
std::span<const Rule* const> AllRules();
const Rule* FindRule(std::string_view name);

struct RuleRegistrar {
  explicit RuleRegistrar(Rule (*make)());
};
#define MENDEL_REGISTER_RULE(make) const ::mendel::RuleRegistrar rule_registrar(make)

/// One mutant of one place of a graph.
struct Mutant {
  const Rule* rule = nullptr;
  Match match;
  Subprogram place;
  Graph original;  ///< the extracted subprogram
  Graph mutant;
};

/// Applies `rule` at `match`: extracts, applies, deduplicates and checks the result (Internal when
/// it is no valid graph, or one of other inputs or outputs).
absl::StatusOr<Mutant> MakeMutant(const Graph& graph, const Rule& rule, const Match& match,
                                  const Predictor& predictor);

}  // namespace mendel

#endif  // MENDEL_MUTATOR_RULE_H_
