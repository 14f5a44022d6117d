// Guesses, from structure, where a plan with a local change meets the original again. Values behind
// that place need no evaluation.
#ifndef MENDEL_VERIFIER_CERTIFY_GUESSES_H_
#define MENDEL_VERIFIER_CERTIFY_GUESSES_H_

#include <map>

#include "verifier/certify/numbering.h"

namespace mendel {

/// Proposes merges (NumberValues) of the plan's values with the original's. The walk goes backwards
/// from each pair of outputs through nodes that are alike, and stops at operands whose nodes
/// differ. `numbering` has no merges. A guess proves nothing: each becomes a claim.
std::map<Origin, Origin> GuessMerges(const Numbering& numbering);

}  // namespace mendel

#endif  // MENDEL_VERIFIER_CERTIFY_GUESSES_H_
