#include "client/onnxruntime/trial.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <utility>
#include <vector>

#include "base/status.h"
#include "runtime/measure.h"

namespace mendel::ort {
namespace {

constexpr int kTurns = 4;
constexpr size_t kRunsAtLeast = 3;
constexpr double kTurnMs = 40;

/// The median of one turn's runs, after one that is not counted.
absl::StatusOr<double> TurnMs(const std::function<absl::Status()>& run) {
  using Clock = std::chrono::steady_clock;
  MENDEL_RETURN_IF_ERROR(run());
  std::vector<double> times;
  double sum = 0;
  while (times.size() < kRunsAtLeast || sum < kTurnMs) {
    const auto begin = Clock::now();
    MENDEL_RETURN_IF_ERROR(run());
    times.push_back(std::chrono::duration<double, std::milli>(Clock::now() - begin).count());
    sum += times.back();
  }
  return Summarize(std::move(times)).median_ms;
}

}  // namespace

absl::StatusOr<TrialTimes> TimeInTurns(const std::function<absl::Status()>& first,
                                       const std::function<absl::Status()>& second,
                                       const std::function<absl::Status()>& pause) {
  TrialTimes times = {std::numeric_limits<double>::infinity(),
                      std::numeric_limits<double>::infinity()};
  for (int turn = 0; turn < kTurns; ++turn) {
    MENDEL_RETURN_IF_ERROR(pause());
    MENDEL_ASSIGN_OR_RETURN(const double first_ms, TurnMs(first));
    MENDEL_RETURN_IF_ERROR(pause());
    MENDEL_ASSIGN_OR_RETURN(const double second_ms, TurnMs(second));
    times.first_ms = std::min(times.first_ms, first_ms);
    times.second_ms = std::min(times.second_ms, second_ms);
  }
  return times;
}

}  // namespace mendel::ort
