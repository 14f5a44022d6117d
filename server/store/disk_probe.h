// Whether a disk still takes changes.
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

/// To be asked between a sync and the acknowledgement of what was synced: an fsync beside an error that makes ext4 read-only may
/// return 0 though the journal was thrown away (seen with Linux 6.18: one of eight writers lost its last append).
class DiskProbe {
 public:
  /// For the disk below `folder`, by a file without a name.
  static absl::StatusOr<std::unique_ptr<DiskProbe>> Open(const std::string& folder);
  /// Unavailable when the disk refuses changes, from then on for ever: what memory shows may not be on the disk, and only a new
  /// start finds what is. OK when it is merely full. Thread-safe; takes microseconds and waits for no disk.
  absl::Status Check();
  /// A change that others can see and whose maker has not asked yet, while in scope.
  class Unproven {
   public:
    explicit Unproven(DiskProbe& probe) : probe_(probe) { ++probe_.unproven_; }
    ~Unproven() { --probe_.unproven_; }
    Unproven(const Unproven&) = delete;
    Unproven& operator=(const Unproven&) = delete;

   private:
    DiskProbe& probe_;
  };
  /// For readers, after they have read: OK at no cost unless there is something unproven or the disk has failed.
  absl::Status Vouch() { return unproven_ > 0 || failed_ ? Check() : absl::OkStatus(); }

 private:
  explicit DiskProbe(Fd file) : file_(std::move(file)) {}

  const Fd file_;
  // The order matters: a maker sets `failed_` before it takes its change off `unproven_`, and readers look at them in reverse.
  std::atomic<int> unproven_{0};
  std::atomic<bool> failed_{false};
};

}  // namespace mendel::server

#endif  // MENDEL_SERVER_STORE_DISK_PROBE_H_
