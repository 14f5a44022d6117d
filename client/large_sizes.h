// Programs of large dimensions, looked at by one evaluation.
//
// A number that is computed of sizes may pass a kink, or the precision of its dtype, where no
// compared size is. Proofs at large sizes cost too much; an evaluation often does not.
#ifndef MENDEL_CLIENT_LARGE_SIZES_H_
#define MENDEL_CLIENT_LARGE_SIZES_H_

#include <array>
#include <cstdint>

#include "absl/status/statusor.h"
#include "base/deadline.h"
#include "client/load_pair.h"
#include "verifier/verifier.h"

namespace mendel {

/// Tried from the largest one down, for one dimension at a time.
constexpr std::array<int64_t, 5> kLargeSizes = {65521, 16381, 4093, 1021, 251};

/// One evaluation takes seconds at most, and no gigabytes.
bool IsCheapToEvaluate(const Pair& pair);

/// True: random inputs prove that the programs differ. `folded`: small distances are expected, and
/// only large ones count.
absl::StatusOr<bool> DifferAtOnce(const Pair& pair, bool folded, WeightMode weights, uint64_t seed,
                                  const Deadline& deadline);

}  // namespace mendel

#endif  // MENDEL_CLIENT_LARGE_SIZES_H_
