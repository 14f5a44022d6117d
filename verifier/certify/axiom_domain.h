// The domain of two programs that axioms prove equal.
#ifndef MENDEL_VERIFIER_CERTIFY_AXIOM_DOMAIN_H_
#define MENDEL_VERIFIER_CERTIFY_AXIOM_DOMAIN_H_

#include <map>

#include "absl/status/status.h"
#include "graph/graph.h"
#include "verifier/certify/numbering.h"
#include "verifier/verifier.h"

namespace mendel {

/// OK where the programs are defined for the same inputs (`options.definedness` says in which
/// directions), values that `merges` names taken for equal. The programs as given decide. Axioms
/// hold for finite numbers and one zero, so canonical forms decide only where no constant is
/// infinite, no function may absorb an infinity, and none reads the sign of a zero.
absl::Status CheckDomainOfAxioms(const Graph& a, const Graph& b,
                                 const std::map<Origin, Origin>& merges,
                                 const VerifierOptions& options);

}  // namespace mendel

#endif  // MENDEL_VERIFIER_CERTIFY_AXIOM_DOMAIN_H_
