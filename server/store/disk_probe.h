// A probe that tests if a disk still accepts changes.
#ifndef MENDEL_SERVER_STORE_DISK_PROBE_H_
#define MENDEL_SERVER_STORE_DISK_PROBE_H_

#include <atomic>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/store/blob_file.h"

namespace mendel::server {

/// A check between a sync and its acknowledgement. An fsync next to an error that makes ext4
/// read-only may return 0 although the journal was discarded (seen with Linux 6.18: one of eight
/// writers lost its last append).
class DiskProbe {
 public:
  /// Opens a probe for the disk below `folder`, by a file without a name.
  static absl::StatusOr<std::unique_ptr<DiskProbe>> Open(const std::string& folder);
  /// Unavailable when the disk refuses changes, and always afterwards: data in memory may be
  /// missing on the disk, and only a new start finds the difference. OK when it is merely full.
  /// Thread-safe; takes microseconds and does not wait for a disk.
  absl::Status Check();
  /// A visible change whose writer has not checked the disk yet, while in scope.
  class Unproven {
   public:
    explicit Unproven(DiskProbe& probe) : probe_(probe) { ++probe_.unproven_; }
    ~Unproven() { --probe_.unproven_; }
    Unproven(const Unproven&) = delete;
    Unproven& operator=(const Unproven&) = delete;

   private:
    DiskProbe& probe_;
  };
  /// A check for readers after a read: OK at no cost, unless a change is unproven or the disk has
  /// failed.
  absl::Status Vouch() { return unproven_ > 0 || failed_ ? Check() : absl::OkStatus(); }

 private:
  explicit DiskProbe(Fd file) : file_(std::move(file)) {}

  const Fd file_;
  // The order matters: a writer sets `failed_` before it removes its change from `unproven_`, and
  // readers load them in reverse.
  std::atomic<int> unproven_{0};
  std::atomic<bool> failed_{false};
};

}  // namespace mendel::server

#endif  // MENDEL_SERVER_STORE_DISK_PROBE_H_
