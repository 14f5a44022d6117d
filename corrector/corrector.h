// Correction: from a mutant, the original program and the boxes where the mutant is wrong to a
// program that is equal everywhere.
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

/// The ways to correct a partial mutant (ARCHITECTURE.md). Prevention (zero gaps, halos) is a
/// rule's own exact variant.
enum class CorrectionKind { kRecompute, kDifference, kInside, kAtEnd, kElementwise };
std::string_view CorrectionName(CorrectionKind correction);

struct CorrectedMutant {
  Graph graph;
  CorrectionKind correction = CorrectionKind::kRecompute;
  /// Overwritten boxes, one entry per output.
  std::vector<std::vector<Box>> boxes;
  /// Arithmetic of the correction as a share of the original program's (textbook flops).
  double flop_share = 0;
};

/// FailedPrecondition when the boxes cover more than `max_share` of some output or are too many
/// (not worth correcting); InvalidArgument when the three do not belong together.
absl::Status CheckCorrectable(const Graph& original, const Graph& mutant,
                              const VerifierReport& report, double max_share);

/// Recompute: the original program, restricted to a wrong box, computes every such box of every
/// output. The result is patched over the mutant's output. Errors as CheckCorrectable.
absl::StatusOr<CorrectedMutant> Recompute(const Graph& original, const Graph& mutant,
                                          const VerifierReport& report, double max_share);

/// Difference: a wrong box is computed, before any elementwise operator, as
///     mutant + (sum of taps read by the original only) - (sum of taps read by the mutant only)
/// (the rows over a seam). The elementwise operators follow, over the whole. Both programs must be
/// one convolution with the same weights, the mutant's between views. Errors as CheckCorrectable,
/// and FailedPrecondition "no difference: ..." for other programs: a chain is not linear in what
/// one of its convolutions reads. Wrong boxes that need two kinds of correction are cut.
absl::StatusOr<CorrectedMutant> Difference(const Graph& original, const Graph& mutant,
                                           const VerifierReport& report, double max_share);

/// Inside the mutant: the recomputation is part of the mutant's last layout change. The mutant's
/// convolution computes wrong boxes of its own result in place. It reads the part of its input that
/// the original reads, with zeros around it (a seam between two images). The elementwise operators
/// follow inside the boxes as outside, then the mutant's views move everything. Conditions as of
/// Difference; also FailedPrecondition "not inside: ..." where the original's reads are not
/// contiguous in the mutant's input.
absl::StatusOr<CorrectedMutant> Inside(const Graph& original, const Graph& mutant,
                                       const VerifierReport& report, double max_share);

/// At the end of the mutant, in its last layout change: the original program computes wrong
/// boxes. They are written over the value that the mutant's last views move, in place. This is
/// for all programs that end with views: chains and stripes too. Errors as CheckCorrectable, and
/// FailedPrecondition "not at the end: ..." where a box consists of more than 256 pieces
/// there.
absl::StatusOr<CorrectedMutant> AtEnd(const Graph& original, const Graph& mutant,
                                      const VerifierReport& report, double max_share);

/// The difference in the elementwise operators that follow. These are applied to the mutant's
/// result over the whole, and its last layout change is part of their pass. In a wrong box they are
/// applied to the result plus the difference, in the correction's own epilogue. Conditions as of
/// Difference; also FailedPrecondition "not in an elementwise operator: ..." where none follows.
absl::StatusOr<CorrectedMutant> InElementwise(const Graph& original, const Graph& mutant,
                                              const VerifierReport& report, double max_share);

using Correct = absl::StatusOr<CorrectedMutant> (*)(const Graph&, const Graph&,
                                                    const VerifierReport&, double);
/// Every way of correction, Recompute first.
inline constexpr Correct kCorrectionKinds[] = {&Recompute, &Difference, &Inside, &AtEnd,
                                               &InElementwise};

}  // namespace mendel

#endif  // MENDEL_CORRECTOR_CORRECTOR_H_
