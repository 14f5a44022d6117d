// Cut points where the plan computes a part of a value of the original.
//
// A plan that computes only what its outputs need has parts p = v[grid] of the original's values v.
// Let V be a fresh tensor of v's type. The original whose readers of v read V, with one more output
// v[grid], and the plan whose readers of p read V[grid], with one more output p, are equal for all
// inputs and all V only if original and plan are: give V the value that v has in the original.
// Going through the plan in topological order, each p then equals V[grid] by its output.
#ifndef MENDEL_VERIFIER_CERTIFY_PART_CUTS_H_
#define MENDEL_VERIFIER_CERTIFY_PART_CUTS_H_

#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/graph.h"
#include "graph/positions.h"
#include "verifier/verifier.h"

namespace mendel {

/// `plan` is claimed to be the elements at `grid` of `original`.
struct PartCut {
  ValueId original;
  ValueId plan;
  Grid grid;
};

/// Float values of the plan that are a part of a value of the original, of which a proper part is
/// among them, in the order of the plan's nodes. Both programs are evaluated once under a draw that
/// is always the same: a guess, which proves nothing. Aborted; DeadlineExceeded.
absl::StatusOr<std::vector<PartCut>> FindPartCuts(const Graph& original, const Graph& plan,
                                                  const VerifierOptions& options);

/// The original and the plan of the header comment, both with the inputs V of all cuts.
absl::StatusOr<std::pair<Graph, Graph>> WithPartCuts(const Graph& original, const Graph& plan,
                                                     const std::vector<PartCut>& cuts);

}  // namespace mendel

#endif  // MENDEL_VERIFIER_CERTIFY_PART_CUTS_H_
