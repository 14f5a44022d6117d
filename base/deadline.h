// Time budgets. Running out of time is a value in the result, never an error.
#ifndef MENDEL_BASE_DEADLINE_H_
#define MENDEL_BASE_DEADLINE_H_

#include <algorithm>
#include <atomic>
#include <chrono>
#include <limits>

namespace mendel {

/// A point on the monotonic clock; copyable, immune to clock jumps. A stop token may make it pass
/// earlier.
class Deadline {
 public:
  static Deadline Never() { return Deadline(std::chrono::steady_clock::time_point::max()); }
  static Deadline After(double seconds) {
    if (!(seconds < 1e9)) return Never();
    return Deadline(std::chrono::steady_clock::now() +
                    std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                        std::chrono::duration<double>(seconds)));
  }
  /// The same point, passed as soon as `*stop` is true; null: no token. The token must outlive the
  /// deadline.
  Deadline StoppedBy(const std::atomic<bool>* stop) const {
    Deadline deadline = *this;
    deadline.stop_ = stop;
    return deadline;
  }
  /// After `share` of the time left, with the same token.
  Deadline Share(double share) const { return After(share * SecondsLeft()).StoppedBy(stop_); }
  /// After at most `seconds` of the time left, with the same token.
  Deadline Within(double seconds) const {
    return After(std::min(seconds, SecondsLeft())).StoppedBy(stop_);
  }
  bool Stopped() const { return stop_ != nullptr && stop_->load(std::memory_order_relaxed); }
  bool Passed() const { return Stopped() || std::chrono::steady_clock::now() >= when_; }
  /// Seconds left, not positive when passed, infinity for Never().
  double SecondsLeft() const { return Stopped() ? std::min(0.0, ClockSeconds()) : ClockSeconds(); }

 private:
  explicit Deadline(std::chrono::steady_clock::time_point when) : when_(when) {}
  double ClockSeconds() const {
    if (when_ == std::chrono::steady_clock::time_point::max())
      return std::numeric_limits<double>::infinity();
    return std::chrono::duration<double>(when_ - std::chrono::steady_clock::now()).count();
  }

  std::chrono::steady_clock::time_point when_;
  const std::atomic<bool>* stop_ = nullptr;
};

/// Seconds since construction.
class Stopwatch {
 public:
  double Seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace mendel

#endif  // MENDEL_BASE_DEADLINE_H_
