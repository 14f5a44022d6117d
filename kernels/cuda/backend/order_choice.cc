#include "kernels/cuda/backend/order_choice.h"

#include <algorithm>
#include <array>
#include <limits>

#include "base/status.h"

namespace mendel::cuda {
namespace {

constexpr int kMostRounds = 10;
constexpr int kLeastRounds = 3;
constexpr double kSecondsForRounds = 0.02;
constexpr double kWins = 0.98;

}  // namespace

absl::StatusOr<bool> IsFaster(const TimeOnce& other, const TimeOnce& best) {
  std::array<double, 2> least = {std::numeric_limits<double>::infinity(),
                                 std::numeric_limits<double>::infinity()};
  double spent = 0;
  for (int round = 0; round < kLeastRounds || (round < kMostRounds && spent < kSecondsForRounds);
       ++round) {
    for (const bool is_other : {false, true}) {
      MENDEL_ASSIGN_OR_RETURN(const double seconds, is_other ? other() : best());
      spent += seconds;
      if (round > 0) least[is_other] = std::min(least[is_other], seconds);
    }
  }
  return least[true] < kWins * least[false];
}

}  // namespace mendel::cuda
