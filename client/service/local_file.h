// Files of this machine as blobs: opened, hashed as a stream, read in pieces, replaced atomically.
#ifndef MENDEL_CLIENT_SERVICE_LOCAL_FILE_H_
#define MENDEL_CLIENT_SERVICE_LOCAL_FILE_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace mendel {

class Sha256;

/// An open file; closed at the end. Movable.
class LocalFile {
 public:
  /// For reading; a regular file.
  static absl::StatusOr<LocalFile> Open(const std::string& path);
  /// For reading and writing, made when absent, not through a symbolic link, and locked: Aborted
  /// when another process has it.
  static absl::StatusOr<LocalFile> OpenPart(const std::string& path);
  LocalFile(LocalFile&& other) noexcept;
  LocalFile& operator=(LocalFile&& other) = delete;
  ~LocalFile();

  absl::StatusOr<int64_t> Size() const;
  /// At most `capacity` bytes at `offset`; 0 at the end.
  absl::StatusOr<int64_t> ReadAt(int64_t offset, char* buffer, int64_t capacity) const;
  /// ResourceExhausted when the disk is full.
  absl::Status WriteAt(int64_t offset, std::string_view bytes) const;
  absl::Status Truncate(int64_t size) const;
  /// Makes the contents safe, then gives the file the name `path` (replacing what was there) and
  /// makes that safe.
  absl::Status MoveTo(const std::string& path) const;
  /// Feeds the first `size` bytes to `hash`.
  absl::Status Hash(int64_t size, Sha256& hash) const;
  const std::string& path() const { return path_; }

 private:
  LocalFile(int fd, std::string path);
  int fd_;
  std::string path_;
};

}  // namespace mendel

#endif  // MENDEL_CLIENT_SERVICE_LOCAL_FILE_H_
