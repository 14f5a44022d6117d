#include "verifier/certify/axiom_domain.h"

#include <cmath>

#include "base/status.h"
#include "verifier/axioms/canonical_pair.h"
#include "verifier/definedness/definedness.h"
#include "verifier/definedness/zero_signs.h"

namespace mendel {
namespace {

/// Some value may be infinite or NaN whatever the inputs are.
bool HasInfinities(const Graph& graph) {
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    const Node& node = graph.nodes()[i];
    if (IsConstant(node) && IsFloat(node.outputs[0].dtype)) {
      const Tensor& value = ConstantValue(node);
      for (int64_t k = 0; k < value.size(); ++k) {
        if (!std::isfinite(value.DoubleAt(k))) return true;
      }
    }
    if (node.op->infinite == nullptr) continue;
    const bool infinite = WithView(graph, static_cast<int32_t>(i),
                                   [&](const NodeView& view) { return node.op->infinite(view); });
    if (infinite) return true;
  }
  return false;
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
  if (given.ok() || absorbs || HasInfinities(a) || HasInfinities(b)) return given;
  if (ReadsSignsOfZeros(NumberValues(a, b, {}, keys))) return given;
  MENDEL_ASSIGN_OR_RETURN(const auto pair, CanonicalizePair(a, b, options.weights));
  ConstantKeys canonical_keys(options.weights);
  const absl::Status canonical =
      CheckDefinedness({pair.first, pair.second, {}, canonical_keys, both});
  return canonical.ok() ? canonical : given;
}

}  // namespace mendel
