// Witnesses of loops at inputs at which their steps contract. The radius of a ball grows from step
// to step, so that late steps need as many bits as there are steps. Large inputs saturate the gates
// of recurrent cells: there radii shrink. Both ends of the longest axis, which is usually time,
// have ordinary inputs: there the programs show their difference before radii have grown.
#ifndef MENDEL_VERIFIER_WITNESS_CONTRACTING_INPUTS_H_
#define MENDEL_VERIFIER_WITNESS_CONTRACTING_INPUTS_H_

#include <optional>

#include "absl/status/statusor.h"
#include "verifier/witness/witness.h"

namespace mendel {

/// Normal inputs of several magnitudes, enclosed with few bits. Nothing where `joint` (JoinByValue)
/// has no loop within the query's box, or where none of them is a witness. Of `options`, the limit
/// of candidates is that of the usual search.
absl::StatusOr<std::optional<WitnessAnswer>> WitnessAtContractingInputs(
    const Graph& joint, const WitnessQuery& query, const WitnessOptions& options);

}  // namespace mendel

#endif  // MENDEL_VERIFIER_WITNESS_CONTRACTING_INPUTS_H_
