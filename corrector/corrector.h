// Mending: from a mutant, the original program and the boxes where the mutant is wrong to a program that is equal everywhere.
#ifndef MENDEL_CORRECTOR_CORRECTOR_H_
#define MENDEL_CORRECTOR_CORRECTOR_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "graph/graph.h"
#include "verifier/verifier.h"

namespace mendel {

/// How a partial mutant is mended (docs/architecture: correction). Prevent (zero gaps, halos) is a rule's own exact variant.
enum class Mending { kRecompute, kDifference, kInside, kAtEnd, kElementwise };
std::string_view MendingName(Mending mending);

struct MendedMutant {
  Graph graph;
  Mending mending = Mending::kRecompute;
  /// Boxes overwritten, an entry an output.
  std::vector<std::vector<Box>> boxes;
  /// Arithmetic of the correction as a share of the original program's (textbook flops).
  double flop_share = 0;
};

/// FailedPrecondition when the boxes cover more than `max_share` of some output or are too many (not worth mending);
/// InvalidArgument when the three do not belong together.
absl::Status CheckMendable(const Graph& original, const Graph& mutant, const JudgeReport& report, double max_share);

/// Recompute: every wrong box of every output is computed by the original program restricted to it and patched over the
/// mutant's output. Errors as CheckMendable.
absl::StatusOr<MendedMutant> Recompute(const Graph& original, const Graph& mutant, const JudgeReport& report, double max_share);

/// Difference: on every wrong box the mutant's result before any elementwise operator, plus the convolution of what only the
/// original reads, minus that of what only the mutant reads (the rows over a seam); the elementwise operators follow, over the
/// whole. Both programs must be one convolution with the same weights, the mutant's between views. Errors as CheckMendable, and
/// FailedPrecondition "no difference: ..." where the programs are not of that kind (a chain is not linear in what one of its
/// convolutions reads). Wrong boxes that are half one thing and half another are cut.
absl::StatusOr<MendedMutant> Difference(const Graph& original, const Graph& mutant, const JudgeReport& report, double max_share);

/// Inside the mutant: recomputation that rides in the mutant's last layout change. Wrong boxes of the mutant's convolution's own
/// result, where it lies, are computed by that convolution over the part of its own input that the original reads, with zeros
/// around it (a seam between two images); the elementwise operators follow inside the boxes as outside, then the mutant's views
/// move everything. Conditions as of Difference; FailedPrecondition "not inside: ..." too where what the original reads does not
/// lie together in the mutant's input.
absl::StatusOr<MendedMutant> Inside(const Graph& original, const Graph& mutant, const JudgeReport& report, double max_share);

/// At the end of the mutant, in its last layout change: wrong boxes are computed by the original program and written over the value
/// that the mutant's last views move, where it lies. For whatever ends with views: chains, which wait until then, and stripes too.
/// Errors as CheckMendable, and FailedPrecondition "not at the end: ..." where a box lies in more than 256 pieces there.
absl::StatusOr<MendedMutant> AtEnd(const Graph& original, const Graph& mutant, const JudgeReport& report, double max_share);

/// The difference in the elementwise operators that follow: these are applied to the mutant's result over the whole, whose last
/// layout change rides in their pass, and a wrong box gets them applied to the result there plus the difference, in the
/// correction's own epilogue. Conditions as of Difference; FailedPrecondition "not in an elementwise operator: ..." too where none
/// follows.
absl::StatusOr<MendedMutant> InElementwise(const Graph& original, const Graph& mutant, const JudgeReport& report, double max_share);

using Mend = absl::StatusOr<MendedMutant> (*)(const Graph&, const Graph&, const JudgeReport&, double);
/// Every way of mending, Recompute first.
inline constexpr Mend kWaysOfMending[] = {&Recompute, &Difference, &Inside, &AtEnd, &InElementwise};

}  // namespace mendel

#endif  // MENDEL_CORRECTOR_CORRECTOR_H_
