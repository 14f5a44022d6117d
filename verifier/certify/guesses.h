// Guesses where the plan of a local change meets the original again, from structure, so that
// nothing behind it need be evaluated.
#ifndef MENDEL_VERIFIER_CERTIFY_GUESSES_H_
#define MENDEL_VERIFIER_CERTIFY_GUESSES_H_

#include <map>

#include "verifier/certify/numbering.h"

namespace mendel {

/// Merges (NumberValues) of values of the plan with values of the original: from each pair of
/// outputs backwards, through nodes that are alike, to the pairs of operands whose own nodes are
/// not. `numbering` has no merges. A guess proves nothing; each is a claim.
std::map<Origin, Origin> GuessMerges(const Numbering& numbering);

}  // namespace mendel

#endif  // MENDEL_VERIFIER_CERTIFY_GUESSES_H_
