#include "optimizer/profile/region_choices.h"

#include <set>
#include <utility>

#include "base/status.h"

namespace mendel {
namespace {

constexpr double kGain = 0.99;  // less is as well an accident of measuring

}  // namespace

absl::StatusOr<Algorithms> CheapestByRegion(
    const std::vector<RegionChoices>& regions, Algorithms best, double least,
    const std::function<absl::StatusOr<std::optional<double>>(const Algorithms&)>& cost) {
  std::set<Algorithms> tried = {best};
  for (bool gained = true; std::exchange(gained, false);) {
    for (const RegionChoices& region : regions) {
      for (const Algorithms& choice : region.choices) {
        Algorithms other = best;
        for (const int32_t node : region.nodes) other.erase(node);
        other.insert(choice.begin(), choice.end());
        if (!tried.insert(other).second) continue;
        MENDEL_ASSIGN_OR_RETURN(const std::optional<double> found, cost(other));
        if (!found.has_value()) return best;
        if (*found >= kGain * least) continue;
        least = *found;
        best = std::move(other);
        gained = true;
      }
    }
  }
  return best;
}

}  // namespace mendel
