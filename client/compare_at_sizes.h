// Programs with symbolic dimensions are compared at several sizes.
#ifndef MENDEL_CLIENT_COMPARE_AT_SIZES_H_
#define MENDEL_CLIENT_COMPARE_AT_SIZES_H_

#include <functional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/deadline.h"
#include "client/load_pair.h"
#include "client/symbolic_sizes.h"
#include "client/turning_sizes.h"
#include "client/verdict.h"

namespace mendel {

/// The means of a comparison. DeadlineExceeded of `relations` makes the verdict `unproven` where a
/// size that was found is not decided.
struct SizedComparison {
  std::function<absl::StatusOr<Pair>(const Sizes& sizes)> load;
  std::function<absl::StatusOr<PairVerdict>(const Sizes& sizes, const Pair& pair)> compare;
  std::function<absl::StatusOr<PairRelations>(const Sizes& sizes)> relations;
  /// True: random inputs prove a difference (size_looks.h). `folded` as there.
  std::function<absl::StatusOr<bool>(const Pair& pair, bool folded)> differ_at_once;
  /// The end of a search of turning sizes, or of looks, that begins now; a note says that it was
  /// not complete.
  std::function<Deadline()> search;
};

/// `pair` and `verdict`, those of size 1, become those of the first sizes that show a difference,
/// or of the last ones.
absl::Status CompareAtSizes(const SizedComparison& by, Pair& pair, PairVerdict& verdict);

bool IsEquivalent(const PairVerdict& verdict);

}  // namespace mendel

#endif  // MENDEL_CLIENT_COMPARE_AT_SIZES_H_
