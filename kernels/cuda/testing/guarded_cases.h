// Test cases run in a child process, which is replaced when a case ends it: after most errors of a
// GPU every further call on the context fails, a kernel may never end, and a driver may crash. One
// such case costs itself, and the others still run.
#ifndef MENDEL_KERNELS_CUDA_TESTING_GUARDED_CASES_H_
#define MENDEL_KERNELS_CUDA_TESTING_GUARDED_CASES_H_

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace mendel::cuda {

/// The exit code of a child process that runs `run`: what must not touch the calling process.
/// INTERNAL where it crashes.
absl::StatusOr<int> ExitCodeInChild(const std::function<int()>& run);

struct GuardLimits {
  double seconds = 300;         ///< no case begins after
  double silent_seconds = 120;  ///< a case that takes longer is killed
  int failures = 20;            ///< no case begins after this number
};

/// Counts are in memory that the processes share. Cases are known by their order: `cases` below
/// must try the same ones in the same order each time it is called.
class GuardedCases {
 public:
  explicit GuardedCases(const GuardLimits& limits);
  ~GuardedCases();
  GuardedCases(const GuardedCases&) = delete;
  GuardedCases& operator=(const GuardedCases&) = delete;

  /// Calls `cases` in a child process, and again in another one for as long as a case ends the
  /// child before its end. The calling process must have no threads and must not have touched the
  /// device. INTERNAL where a process cannot be made, or where one ends outside a case; else the
  /// number of failures.
  absl::StatusOr<int> Run(const std::function<void()>& cases);

  /// In `cases`: one case, run unless an earlier child has. "": right; other text: wrong, reported;
  /// an error: reported, and ends the child.
  void Case(const std::string& description,
            const std::function<absl::StatusOr<std::string>()>& run);
  /// A failure after which no case begins, in whatever child: the device is gone.
  void GiveUp(const std::string& why);
  bool GoesOn() const;
  /// After a part of `all` steps, of which `done` were made: prints the part's counts, once.
  void EndPart(const std::string& what, size_t done, size_t all);
  /// Cases of this part that were run, by whatever child.
  int runs() const;

 private:
  struct Shared;

  void Fail(const std::string& description, const std::string& why);

  const GuardLimits limits_;
  const std::chrono::steady_clock::time_point end_;
  Shared* const shared_;
  int case_ = 0, part_ = 0;  // of this process
};

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_TESTING_GUARDED_CASES_H_
