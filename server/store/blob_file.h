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

/// Converts the errno value `error` to a status: ResourceExhausted (full), PermissionDenied,
/// NotFound or Unavailable. `what` must not name a path of the server.
absl::Status FileError(std::string_view what, int error);
/// Opens the folder `name` below `parent`. If it is missing, creates it and syncs `parent`. Refuses
/// a link.
absl::StatusOr<Fd> OpenFolder(int parent, const std::string& name);
/// Opens the folder `name`. The result is not ok() if the folder is missing or the name is
/// something else.
Fd ExistingFolder(int parent, const std::string& name);
/// Opens a regular file that has one name. `flags` are those of open(2). Refuses a symbolic link.
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

/// Hashes the first `size` bytes. Drops the bytes of a large file from the page cache after hashing
/// them. DataLoss if the file is shorter.
absl::Status HashFile(int file, int64_t size, Sha256& hash);
/// Reports to the kernel that these bytes are not needed soon. Only for large files: small ones
/// stay cached.
void ForgetPages(int file, int64_t offset, int64_t length);

}  // namespace mendel::server

#endif  // MENDEL_SERVER_STORE_BLOB_FILE_H_
