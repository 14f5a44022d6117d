// Time budgets. Running out of time is a value in the result, never an error.
#ifndef MENDEL_BASE_DEADLINE_H_
#define MENDEL_BASE_DEADLINE_H_

#include <chrono>
#include <limits>

namespace mendel {

/// A point on the monotonic clock; copyable, immune to clock jumps.
class Deadline {
 public:
  static Deadline Never() { return Deadline(std::chrono::steady_clock::time_point::max()); }
  static Deadline After(double seconds) {
    if (!(seconds < 1e9)) return Never();
    return Deadline(std::chrono::steady_clock::now() +
                    std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                        std::chrono::duration<double>(seconds)));
  }
  bool Passed() const { return std::chrono::steady_clock::now() >= when_; }
  /// Seconds left, negative when passed, infinity for Never().
  double SecondsLeft() const {
    if (when_ == std::chrono::steady_clock::time_point::max())
      return std::numeric_limits<double>::infinity();
    return std::chrono::duration<double>(when_ - std::chrono::steady_clock::now()).count();
  }

 private:
  explicit Deadline(std::chrono::steady_clock::time_point when) : when_(when) {}
  std::chrono::steady_clock::time_point when_;
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
