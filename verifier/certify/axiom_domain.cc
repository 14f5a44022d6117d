#include "verifier/certify/axiom_domain.h"

#include <utility>

#include "base/status.h"
#include "verifier/axioms/axioms.h"
#include "verifier/axioms/canonical_pair.h"
#include "verifier/definedness/definedness.h"
#include "verifier/definedness/zero_signs.h"

namespace mendel {
namespace {

/// Some value may be infinite or NaN whatever the inputs are.
bool HasInfinities(const Graph& graph) {
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    const Node& node = graph.nodes()[i];
    if (IsConstant(node) && !ConstantValue(node).AllFinite()) return true;
    if (node.op->infinite == nullptr) continue;
    const bool infinite = WithView(graph, static_cast<int32_t>(i),
                                   [&](const NodeView& view) { return node.op->infinite(view); });
    if (infinite) return true;
  }
  return false;
}

/// CheckDefinedness with choices of infinities in one form, which keeps where a value is defined.
absl::Status CheckChosenInfinities(const Graph& a, const Graph& b,
                                   const std::map<Origin, Origin>& merges,
                                   const VerifierOptions& options) {
  std::map<ValueId, ValueId> of_a, of_b;
  MENDEL_ASSIGN_OR_RETURN(const Graph f, WithChosenInfinities(a, options.weights, nullptr, &of_a));
  MENDEL_ASSIGN_OR_RETURN(const Graph g, WithChosenInfinities(b, options.weights, nullptr, &of_b));
  std::map<Origin, Origin> copies;
  for (const auto& [from, to] : merges) {
    const auto plan = of_b.find(from.value), original = of_a.find(to.value);
    if (plan == of_b.end() || original == of_a.end()) continue;
    copies[{from.side, plan->second}] = {to.side, original->second};
  }
  ConstantKeys keys(options.weights);
  return CheckDefinedness(
      {f, g, std::move(copies), keys, options.definedness == DefinednessCheck::kBoth});
}

}  // namespace

absl::Status CheckDomainOfAxioms(const Graph& a, const Graph& b,
                                 const std::map<Origin, Origin>& merges,
                                 const VerifierOptions& options) {
  if (options.definedness == DefinednessCheck::kNone) return absl::OkStatus();
  const bool both = options.definedness == DefinednessCheck::kBoth;
  ConstantKeys keys(options.weights);
  bool absorbs = true;
  const absl::Status given = CheckDefinedness({a, b, merges, keys, both, &absorbs});
  if (given.ok()) return given;
  if (ReadsSignsOfZeros(NumberValues(a, b, {}, keys))) return given;
  const bool infinities = HasInfinities(a) || HasInfinities(b);
  if (infinities && CheckChosenInfinities(a, b, merges, options).ok()) return absl::OkStatus();
  if (absorbs || infinities) return given;
  MENDEL_ASSIGN_OR_RETURN(const auto pair, CanonicalizePair(a, b, options.weights));
  ConstantKeys canonical_keys(options.weights);
  const absl::Status canonical =
      CheckDefinedness({pair.first, pair.second, {}, canonical_keys, both});
  return canonical.ok() ? canonical : given;
}

}  // namespace mendel
