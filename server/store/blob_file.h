// Files below one folder, opened name by name without following links.
#ifndef MENDEL_SERVER_STORE_BLOB_FILE_H_
#define MENDEL_SERVER_STORE_BLOB_FILE_H_

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/hash.h"

namespace mendel::server {

/// A file descriptor, closed on destruction.
class Fd {
 public:
  explicit Fd(int fd = -1) : fd_(fd) {}
  ~Fd();
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  int get() const { return fd_; }
  bool ok() const { return fd_ >= 0; }

 private:
  int fd_;
};

/// The status of `errno`: ResourceExhausted (full), PermissionDenied, NotFound or Unavailable.
/// `what` names no path of the server.
absl::Status FileError(std::string_view what, int error);
/// A folder below `parent`, made when it is missing (and `parent` then synced). Never a link.
absl::StatusOr<Fd> OpenFolder(int parent, const std::string& name);
/// The same, not ok when it is missing or something else.
Fd ExistingFolder(int parent, const std::string& name);
/// A regular file of one link; `flags` as for open(2). Never a link to one.
absl::StatusOr<Fd> OpenFile(int folder, const std::string& name, int flags, mode_t mode = 0600);
absl::Status SyncFolder(int folder);

struct FileInfo {
  int64_t size = 0;
  int64_t touched_micros = 0;
  uint64_t inode = 0;
};
/// Nullopt unless a regular file of that name is there.
std::optional<FileInfo> Inspect(int folder, const std::string& name);
absl::StatusOr<FileInfo> Inspect(int file);
/// Names in a folder, sorted, without "." and "..".
absl::StatusOr<std::vector<std::string>> Names(int folder);
/// Sets the time of the last change.
absl::Status SetTime(int file, int64_t micros);

/// Hashes the first `size` bytes and drops them from the page cache behind itself when they are
/// many. DataLoss when there are fewer.
absl::Status HashFile(int file, int64_t size, Sha256& hash);
/// Reports the kernel that these bytes will not be needed soon; for large files only (small ones
/// stay cached).
void ForgetPages(int file, int64_t offset, int64_t length);

}  // namespace mendel::server

#endif  // MENDEL_SERVER_STORE_BLOB_FILE_H_
