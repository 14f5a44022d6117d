// Progress: the reports of long work to its watcher, and the way to stop it.
#ifndef MENDEL_OPTIMIZER_SEARCH_PROGRESS_H_
#define MENDEL_OPTIMIZER_SEARCH_PROGRESS_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

#include "base/deadline.h"

namespace mendel {

struct ProgressEvent {
  std::string phase;       ///< "search", "certify", ...
  std::string detail;      ///< what is being looked at
  int64_t candidates = 0;  ///< verified so far
  double candidates_per_second = 0;
  double best_speedup = 1;  ///< over the baseline, measured
  double seconds_left = 0;  ///< seconds left of the budget; negative: no budget in this phase
  bool last = false;        ///< of its phase: watchers show it whatever they showed just before
};

/// Called from the optimizing thread. May be empty.
using ProgressFunction = std::function<void(const ProgressEvent&)>;

/// The reason why a search ended: a value in the result, never an error.
enum class StopReason {
  kSaturated,
  kBudget,
  kInterrupted,
  kCandidateLimit,
  kRoundLimit,
  kNodeLimit,
  kClassLimit,
  kByteLimit
};
inline const char* StopReasonName(StopReason reason) {
  switch (reason) {
    case StopReason::kSaturated:
      return "saturated";
    case StopReason::kBudget:
      return "budget";
    case StopReason::kInterrupted:
      return "interrupted";
    case StopReason::kCandidateLimit:
      return "candidate limit";
    case StopReason::kRoundLimit:
      return "round limit";
    case StopReason::kNodeLimit:
      return "node limit";
    case StopReason::kClassLimit:
      return "class limit";
    case StopReason::kByteLimit:
      return "byte limit";
  }
  return "";
}

}  // namespace mendel

#endif  // MENDEL_OPTIMIZER_SEARCH_PROGRESS_H_
