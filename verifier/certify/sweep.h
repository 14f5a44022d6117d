// Proof by canonical forms between cut points that are found numerically (docs/verifier.md,
// "Sweeping").
//
// An axiom looks at how an operand is made (exp(a + b) = exp(a) exp(b)), so that it may part what
// oracles would hold together when the two programs make that operand differently. Therefore values
// that look equal in doubles are cut first: each becomes one free input of both programs and an
// obligation of its own, and axioms apply only between cuts.
//
// Why all obligations together prove the programs equal: give every cut the value it has in A.
// Going through B in topological order, each cut value of B is computed from cut values that are
// A's already, and its obligation, which holds for all values of the cuts, says that it is A's too;
// the outputs are obligations like the others. The domain is checked without cuts, which would make
// outputs of what A computes under a guard only.
#ifndef MENDEL_VERIFIER_CERTIFY_SWEEP_H_
#define MENDEL_VERIFIER_CERTIFY_SWEEP_H_

#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "graph/graph.h"
#include "verifier/verifier.h"

namespace mendel {

/// Certify for programs that need axioms at some places and algebra at others. Inputs and
/// outputs of equal names, in the same order. FailedPrecondition: not proven, which says nothing
/// about equality. The certificate cannot be replayed: its hashes are those of the cut programs.
/// `used` (may be null) counts axioms.
absl::StatusOr<Certificate> CertifySwept(const Graph& a, const Graph& b,
                                         const VerifierOptions& options,
                                         std::map<std::string, int>* used);

}  // namespace mendel

#endif  // MENDEL_VERIFIER_CERTIFY_SWEEP_H_
