// Both programs of a comparison rewritten by axioms, where they are not provably equal as given.
#ifndef MENDEL_VERIFIER_AXIOMS_REWRITTEN_PAIR_H_
#define MENDEL_VERIFIER_AXIOMS_REWRITTEN_PAIR_H_

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/graph.h"
#include "verifier/verifier.h"

namespace mendel {

enum class PairForm {
  kMaskedSoftmax,  ///< masked_softmax.h
  kCanonical       ///< all axioms (axioms.h)
};
/// All forms, in the order in which they are tried.
inline constexpr std::array<PairForm, 2> kPairForms = {PairForm::kMaskedSoftmax,
                                                       PairForm::kCanonical};
/// The first name of RewrittenPair::axioms: "masked softmax" or "canonical form".
std::string_view PairFormName(PairForm form);

struct RewrittenPair {
  Graph f, g;
  std::vector<std::string> axioms;  ///< the form's name, then the axioms used
};

/// Both programs rewritten; nullopt if that changes neither. Deterministic: a replayed certificate
/// sees the same programs. Where a program is defined must be decided of it as given.
absl::StatusOr<std::optional<RewrittenPair>> RewriteBoth(PairForm form, const Graph& f,
                                                         const Graph& g, WeightMode weights);

}  // namespace mendel

#endif  // MENDEL_VERIFIER_AXIOMS_REWRITTEN_PAIR_H_
