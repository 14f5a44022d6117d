// Sizes at which both programs of a comparison are evaluated, beside those at which they are proven
// equal.
//
// Proofs at many sizes cost too much; an evaluation often does not. It shows strides and roundings
// of window counts, dimensions that matter together, and numbers computed of sizes that pass a kink
// or the precision of their dtype.
#ifndef MENDEL_CLIENT_SIZE_LOOKS_H_
#define MENDEL_CLIENT_SIZE_LOOKS_H_

#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/deadline.h"
#include "client/load_pair.h"
#include "verifier/verifier.h"

namespace mendel {

/// Tried from the largest one down, for one dimension at a time. Some have many divisors, for
/// programs of multiples only.
inline constexpr std::array<int64_t, 5> kLargePrimes = {65521, 16381, 4093, 1021, 251};
inline constexpr std::array<int64_t, 5> kLargeMultiples = {55440, 15120, 5040, 1680, 240};

/// By dimension, the sizes at which some program changes.
using TurningSets = std::map<std::string, std::set<int64_t>>;

/// Small sizes of each dimension, all dimensions alike, and turning sizes beside each other: all of
/// them, or a random choice.
std::vector<Sizes> SizesToLookAt(const TurningSets& turning, uint64_t seed);

/// Every size of `a` is at least that of `b`.
bool IsAtLeast(const Sizes& a, const Sizes& b);

/// One evaluation takes a second at most, and no gigabytes.
bool IsCheapToEvaluate(const Pair& pair);

/// True: random inputs prove that the programs differ. `folded`: small distances are expected, and
/// only large ones count.
absl::StatusOr<bool> DifferAtOnce(const Pair& pair, bool folded, WeightMode weights, uint64_t seed,
                                  const Deadline& deadline);

}  // namespace mendel

#endif  // MENDEL_CLIENT_SIZE_LOOKS_H_
