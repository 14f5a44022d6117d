// CHECK: for states in which going on could return a wrong program. Never for user input (use
// absl::Status).
#ifndef MENDEL_BASE_CHECK_H_
#define MENDEL_BASE_CHECK_H_

namespace mendel::internal {
[[noreturn]] void CheckFailed(const char* condition, const char* file, int line);
}  // namespace mendel::internal

/// Aborts the process with the condition and its place when `condition` is false, in every build
/// type.
#define MENDEL_CHECK(condition)       \
  ((condition) ? static_cast<void>(0) \
               : ::mendel::internal::CheckFailed(#condition, __FILE__, __LINE__))

#endif  // MENDEL_BASE_CHECK_H_
