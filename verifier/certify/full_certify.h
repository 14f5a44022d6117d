// The slow second opinion: both programs evaluated whole, nothing shared, no cut points.
#ifndef MENDEL_VERIFIER_CERTIFY_FULL_CERTIFY_H_
#define MENDEL_VERIFIER_CERTIFY_FULL_CERTIFY_H_

#include "absl/status/statusor.h"
#include "graph/graph.h"
#include "verifier/verifier.h"

namespace mendel {

/// Certify without cuts, which must agree with it; the bound is that of the whole programs and
/// needs more tests. The certificate cannot be replayed: its hashes are empty. Inputs are matched
/// by name, outputs by position.
absl::StatusOr<Certificate> CertifyWithoutCuts(const Graph& a, const Graph& b,
                                               const VerifierOptions& options);

}  // namespace mendel

#endif  // MENDEL_VERIFIER_CERTIFY_FULL_CERTIFY_H_
