// Mending: from a mutant, the original program and the boxes where the mutant is wrong to a program that is equal everywhere.
#ifndef MENDEL_CORRECTOR_CORRECTOR_H_
#define MENDEL_CORRECTOR_CORRECTOR_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/graph.h"
#include "verifier/verifier.h"

namespace mendel {

/// How a partial mutant is mended (docs/architecture: correction). Prevent (zero gaps, halos) is a rule's own exact variant.
enum class Mending { kRecompute, kDifference };
std::string_view MendingName(Mending mending);

struct MendedMutant {
  Graph graph;
  Mending mending = Mending::kRecompute;
  /// Boxes overwritten, an entry an output.
  std::vector<std::vector<Box>> boxes;
  /// Arithmetic of the correction as a share of the original program's (textbook flops).
  double flop_share = 0;
};

/// Recompute: every wrong box of every output is computed by the original program restricted to it and patched over the
/// mutant's output. FailedPrecondition when the boxes cover more than `max_share` of some output (not worth mending).
absl::StatusOr<MendedMutant> Recompute(const Graph& original, const Graph& mutant, const JudgeReport& report, double max_share);

}  // namespace mendel

#endif  // MENDEL_CORRECTOR_CORRECTOR_H_
