// An alternative is a program made from a mutant, known (or, for exact claims, screened) to equal
// the subprogram it replaces.
#ifndef MENDEL_OPTIMIZER_SEARCH_ALTERNATIVES_H_
#define MENDEL_OPTIMIZER_SEARCH_ALTERNATIVES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "corrector/corrector.h"
#include "mutator/rule.h"
#include "optimizer/profile/profile_cache.h"
#include "verifier/verifier.h"

namespace mendel {

/// The outcome of one candidate.
enum class Verification { kEqual, kCorrected, kScreenedOut, kTooWrong, kUnproven };

struct Alternative {
  Verification verification = Verification::kUnproven;
  std::string reason;
  bool faulty = false;  ///< the verifier refuses what rule or corrector claim: a defect of theirs,
                        ///< and the candidate is not used
  /// kEqual: the mutant; kCorrected: the mutant with its correction.
  Graph graph;
  std::string correction;               ///< "" or a CorrectionName
  std::vector<std::vector<Box>> boxes;  ///< corrected, an entry an output
  double flop_share = 0;                ///< flop share of the correction
  /// Other corrections of the same mutant. Each is measured beside `graph`, and PreferCorrection
  /// takes the fastest. Empty afterwards.
  std::vector<CorrectedMutant> others;
};

/// The report to the user about a defect of `rule`: its name, `what` is wrong, that the search went
/// on without.
std::string DescribeFault(const Rule& rule, std::string_view what);

struct VerifierLimits {
  uint64_t seed = 1;
  /// A mutant wrong in more than this share of an output is not corrected.
  double max_wrong_share = 0.6;
  double max_seconds = 5;
};

/// Verifies `mutant` by its rule's claim. An exact claim is screened here and proven when the whole
/// plan is certified; an exact mutant that the screen refuses is kScreenedOut and `faulty`. A
/// partial claim is localized and corrected, by recomputation unless another way was preferred. A
/// candidate that the verifier cannot decide within its time is kUnproven. Verdicts are stored in
/// `cache`; they steer the search only, since every delivered plan is certified afresh.
absl::StatusOr<Alternative> Verify(const Mutant& mutant, const VerifierLimits& limits,
                                   ProfileCache& cache);

/// Makes others[number] the way in which `mutant` is corrected (`number` < 0: the one that it is),
/// here and wherever Verify meets it.
absl::Status PreferCorrection(const Mutant& mutant, int number, Alternative& alternative,
                              ProfileCache& cache);

}  // namespace mendel

#endif  // MENDEL_OPTIMIZER_SEARCH_ALTERNATIVES_H_
