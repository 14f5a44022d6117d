// A lock that one process at a time holds for a device, so that measurements of different processes
// do not disturb each other.
#ifndef MENDEL_RUNTIME_DEVICE_LOCK_H_
#define MENDEL_RUNTIME_DEVICE_LOCK_H_

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace mendel {

struct LockWait {
  double seconds = 600;
  /// Called once when another process holds the lock, with a sentence for people; null: nothing is
  /// reported.
  std::function<void(const std::string&)> report = nullptr;
  /// Ends the waiting when it becomes true.
  const std::atomic<bool>* interrupted = nullptr;
};

/// flock(2) on mendel-NAME.lock in MENDEL_LOCK_DIR of the environment, or /tmp, so that processes
/// of all users that see that folder exclude each other. The system releases the lock however the
/// holder ends. Locks are not recursive: a process that takes one twice waits for itself.
class DeviceLock {
 public:
  /// `name`: letters, digits and '-', such as a device's UUID. Unavailable when the time is over or
  /// the file cannot be opened, Cancelled when interrupted.
  static absl::StatusOr<std::unique_ptr<DeviceLock>> Take(std::string_view name,
                                                          const LockWait& wait);
  ~DeviceLock();
  DeviceLock(const DeviceLock&) = delete;
  DeviceLock& operator=(const DeviceLock&) = delete;

 private:
  explicit DeviceLock(int file) : file_(file) {}
  int file_;
};

}  // namespace mendel

#endif  // MENDEL_RUNTIME_DEVICE_LOCK_H_
