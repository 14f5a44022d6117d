// Whether a disk still takes changes.
#ifndef MENDEL_SERVER_STORE_DISK_PROBE_H_
#define MENDEL_SERVER_STORE_DISK_PROBE_H_

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
  static absl::StatusOr<DiskProbe> Open(const std::string& folder);
  /// Unavailable when the disk refuses changes; OK when it is only full. Thread-safe; takes microseconds and waits for no disk.
  absl::Status Check() const;

 private:
  explicit DiskProbe(Fd file) : file_(std::move(file)) {}

  Fd file_;
};

}  // namespace mendel::server

#endif  // MENDEL_SERVER_STORE_DISK_PROBE_H_
