// Where a plan is defined (docs/verification.md, section 1, "domain"): x and x * r / r agree formally and differ at r = 0.
#ifndef MENDEL_VERIFIER_DOMAIN_H_
#define MENDEL_VERIFIER_DOMAIN_H_

#include "absl/status/status.h"
#include "verifier/numbering.h"

namespace mendel {

/// Every denominator and every argument of a partial function in the plan must occur as such in the original (the same number) or
/// be provably inside the domain. Unimplemented naming the first node of the plan for which neither is known. In exact mode the
/// stored elements of weights count as proofs.
absl::Status CheckDomain(const Numbering& numbering, WeightMode weights = WeightMode::kSymbolic);

}  // namespace mendel

#endif  // MENDEL_VERIFIER_DOMAIN_H_
