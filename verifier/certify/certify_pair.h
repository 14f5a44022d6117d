// One attempt to prove a pair of programs equal, as they are given.
#ifndef MENDEL_VERIFIER_CERTIFY_CERTIFY_PAIR_H_
#define MENDEL_VERIFIER_CERTIFY_CERTIFY_PAIR_H_

#include <map>

#include "absl/status/statusor.h"
#include "verifier/certify/numbering.h"
#include "verifier/verifier.h"

namespace mendel {

/// Certify without axioms. `exact_tests`: the number of tests, whatever the target; -1: as many as
/// the target needs. Interfaces have been checked.
absl::StatusOr<Certificate> CertifyPair(const Graph& original, const Graph& plan,
                                        const VerifierOptions& options, int exact_tests);

/// The same, or cut at parts of values where degrees are too large (part_cuts.h).
absl::StatusOr<Certificate> CertifyGiven(const Graph& original, const Graph& plan,
                                         const VerifierOptions& options);

/// Checks definedness as `options` says. `merges`: values known to be equal.
absl::Status CheckWhereDefined(const Graph& original, const Graph& plan,
                               const std::map<Origin, Origin>& merges,
                               const VerifierOptions& options);

}  // namespace mendel

#endif  // MENDEL_VERIFIER_CERTIFY_CERTIFY_PAIR_H_
