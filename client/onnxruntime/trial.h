// Times two ways to do one thing.
#ifndef MENDEL_CLIENT_ONNXRUNTIME_TRIAL_H_
#define MENDEL_CLIENT_ONNXRUNTIME_TRIAL_H_

#include <functional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace mendel::ort {

struct TrialTimes {
  double first_ms = 0;
  double second_ms = 0;
};

/// Runs the two in turns, several times each, and returns the smallest medians of a turn. `pause`
/// is called before every turn: it waits until idle threads have gone to sleep. Errors are those of
/// the three functions.
absl::StatusOr<TrialTimes> TimeInTurns(const std::function<absl::Status()>& first,
                                       const std::function<absl::Status()>& second,
                                       const std::function<absl::Status()>& pause);

}  // namespace mendel::ort

#endif  // MENDEL_CLIENT_ONNXRUNTIME_TRIAL_H_
