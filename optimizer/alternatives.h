// From a mutant to an alternative: a program known (or, for exact claims, screened) to equal the subprogram it replaces.
#ifndef MENDEL_OPTIMIZER_ALTERNATIVES_H_
#define MENDEL_OPTIMIZER_ALTERNATIVES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "corrector/corrector.h"
#include "mutator/rule.h"
#include "optimizer/profile_cache.h"
#include "verifier/verifier.h"

namespace mendel {

/// What became of one candidate.
enum class Judgement { kEqual, kMended, kScreenedOut, kTooWrong, kUnproven };

struct Alternative {
  Judgement judgement = Judgement::kUnproven;
  std::string reason;
  bool faulty = false;  ///< the judge refuses what rule or corrector claim: a defect of theirs, and the candidate is not used
  /// kEqual: the mutant; kMended: the mutant with its correction.
  Graph graph;
  std::string mending;                  ///< "" or a MendingName
  std::vector<std::vector<Box>> boxes;  ///< mended, an entry an output
  double flop_share = 0;                ///< of the correction
  /// Other ways of mending, equally right: to be measured beside `graph` and told to PreferMending. Empty once that is done.
  std::vector<MendedMutant> others;
};

/// What the user is told of a defect of `rule`: its name, `what` is wrong, that the search went on without.
std::string DescribeFault(const Rule& rule, std::string_view what);

struct JudgeLimits {
  uint64_t seed = 1;
  /// A mutant wrong in more than this share of an output is not mended.
  double max_wrong_share = 0.6;
  double max_seconds = 5;
};

/// Judges `mutant` by its rule's claim. An exact claim is screened here and proven when the whole plan is certified; an exact
/// mutant that the screen refuses is kScreenedOut and `faulty`. A partial claim is localised and mended, by recomputation unless
/// another way was preferred. A candidate that the judge cannot decide within its time is kUnproven. Verdicts are stored in
/// `cache`; they steer the search only, since every delivered plan is certified afresh.
absl::StatusOr<Alternative> Judge(const Mutant& mutant, const JudgeLimits& limits, ProfileCache& cache);

/// Makes others[number] the way in which `mutant` is mended (`number` < 0: the one that it is), here and wherever Judge meets it.
absl::Status PreferMending(const Mutant& mutant, int number, Alternative& alternative, ProfileCache& cache);

}  // namespace mendel

#endif  // MENDEL_OPTIMIZER_ALTERNATIVES_H_
