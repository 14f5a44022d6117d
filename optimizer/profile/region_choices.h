// Algorithms region by region: where one node alone would pay for conversions that many save
// together.
#ifndef MENDEL_OPTIMIZER_PROFILE_REGION_CHOICES_H_
#define MENDEL_OPTIMIZER_PROFILE_REGION_CHOICES_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "optimizer/profile/predicted_algorithms.h"

namespace mendel {

/// Nodes that change their algorithms together.
struct RegionChoices {
  std::vector<int32_t> nodes;
  /// Algorithms of these nodes; those that are absent run by the backend's default.
  std::vector<Algorithms> choices;
};

/// From `best`, of cost `least`: one region at a time has each of its choices while all others
/// stay, and keeps what costs less, until none gains. `cost` answers with the whole program's, once
/// for each choice, infinity for one that does not count, nothing where the search is to end with
/// what was found; its errors are returned. Ties stay with what was there.
absl::StatusOr<Algorithms> CheapestByRegion(
    const std::vector<RegionChoices>& regions, Algorithms best, double least,
    const std::function<absl::StatusOr<std::optional<double>>(const Algorithms&)>& cost);

}  // namespace mendel

#endif  // MENDEL_OPTIMIZER_PROFILE_REGION_CHOICES_H_
