// Limits of time and memory, independent of the work: a thread watches the clock, and the kernel
// bounds the memory. At a limit the process writes a prepared answer and exits.
#ifndef MENDEL_CLIENT_LIMITS_H_
#define MENDEL_CLIENT_LIMITS_H_

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "absl/status/statusor.h"

namespace mendel {

/// "6GB", "512MB", "1000000": bytes. InvalidArgument otherwise.
absl::StatusOr<int64_t> ParseBytes(std::string_view text);
/// Half of the machine's memory.
int64_t DefaultMemoryLimit();

/// The answer of a stopped process: text on standard output, a file, and an exit code.
struct StoppedAnswer {
  std::string text;
  std::string file;  ///< empty: none
  std::string file_text;
  int exit_code = 0;
};

struct Limits {
  double seconds = 0;        ///< seconds of wall time from now on
  int64_t memory_bytes = 0;  ///< of private memory
};

/// Limits for the object's lifetime; one at a time in a process.
class LimitGuard {
 public:
  /// `answer` makes the report for a reason ("out of time", "out of memory (limit 6 GB)"). The
  /// constructor calls it.
  LimitGuard(const Limits& limits, const std::function<StoppedAnswer(std::string_view)>& answer);
  /// Removes all limits.
  ~LimitGuard();
  LimitGuard(const LimitGuard&) = delete;
  LimitGuard& operator=(const LimitGuard&) = delete;

  /// Sets the remaining time from now on.
  void SetTime(double seconds);

 private:
  void Watch();

  StoppedAnswer out_of_time_;
  std::mutex mutex_;
  std::condition_variable changed_;
  double stop_at_ = 0;
  bool over_ = false;
  std::thread watch_;
};

}  // namespace mendel

#endif  // MENDEL_CLIENT_LIMITS_H_
