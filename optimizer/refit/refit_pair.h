// Pairs each stored constant of the folded program with an expression of the other one. Candidates
// only: the verifier decides.
#ifndef MENDEL_OPTIMIZER_REFIT_REFIT_PAIR_H_
#define MENDEL_OPTIMIZER_REFIT_REFIT_PAIR_H_

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "optimizer/refit/refit_terms.h"

namespace mendel {

/// `view` (of the stored `constant`: reshaped, transposed, sliced, expanded) stands where the other
/// program has `expression`.
struct RefitCandidate {
  RefitTerm constant;
  RefitTerm view;
  RefitTerm expression;
  /// `expression` only moves or converts stored elements: the values must be equal.
  bool moved = false;
};

/// Names of constants and of values, for messages.
using RefitNames = std::map<int32_t, std::string>;

struct RefitPairing {
  std::vector<RefitCandidate> candidates;
  std::string mismatch;  ///< why the programs do not fit each other; empty when they do
};

/// Walks both programs from their outputs (pairs of unfolded and folded term), in canonical form.
/// Adds terms: weights that do not fit each other are compared once more with their products
/// multiplied out. Candidates are of the `stored` constants of the folded program only: nothing can
/// replace a constant that the canonical form adds.
RefitPairing PairPrograms(RefitTerms& terms,
                          const std::vector<std::pair<RefitTerm, RefitTerm>>& outputs,
                          const std::set<RefitTerm>& stored, const RefitNames& names);

/// A formula over the names of the constants, views left out; long ones are cut.
std::string ExpressionString(const RefitTerms& terms, RefitTerm term, const RefitNames& names);

}  // namespace mendel

#endif  // MENDEL_OPTIMIZER_REFIT_REFIT_PAIR_H_
