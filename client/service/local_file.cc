#include "client/service/local_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <span>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "base/status.h"

namespace mendel {
namespace {

absl::Status Failure(int error, std::string_view what, const std::string& path) {
  if (error == ENOSPC || error == EDQUOT)
    return absl::ResourceExhaustedError(Cat("the disk is full: ", what, " ", path));
  return absl::ErrnoToStatus(error, Cat("cannot ", what, " ", path));
}

}  // namespace

LocalFile::LocalFile(int fd, std::string path) : fd_(fd), path_(std::move(path)) {}
LocalFile::LocalFile(LocalFile&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), path_(std::move(other.path_)) {}
LocalFile::~LocalFile() {
  if (fd_ >= 0) close(fd_);
}

absl::StatusOr<LocalFile> LocalFile::Open(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return Failure(errno, "open", path);
  LocalFile file(fd, path);
  struct stat info {};
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode))
    return InvalidInput(path, " is not a regular file");
  return file;
}

absl::StatusOr<LocalFile> LocalFile::OpenPart(const std::string& path) {
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666);
  if (fd < 0) return Failure(errno, "write", path);
  LocalFile file(fd, path);
  if (flock(fd, LOCK_EX | LOCK_NB) != 0)
    return absl::AbortedError(Cat("another process is writing ", path));
  return file;
}

absl::StatusOr<int64_t> LocalFile::Size() const {
  struct stat info {};
  if (fstat(fd_, &info) != 0) return Failure(errno, "examine", path_);
  return info.st_size;
}

absl::StatusOr<int64_t> LocalFile::ReadAt(int64_t offset, char* buffer, int64_t capacity) const {
  while (true) {
    const ssize_t count = pread(fd_, buffer, static_cast<size_t>(capacity), offset);
    if (count >= 0) return count;
    if (errno != EINTR) return Failure(errno, "read", path_);
  }
}

absl::Status LocalFile::WriteAt(int64_t offset, std::string_view bytes) const {
  while (!bytes.empty()) {
    const ssize_t count = pwrite(fd_, bytes.data(), bytes.size(), offset);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return Failure(errno, "write", path_);
    offset += count;
    bytes.remove_prefix(static_cast<size_t>(count));
  }
  return absl::OkStatus();
}

absl::Status LocalFile::Truncate(int64_t size) const {
  return ftruncate(fd_, size) == 0 ? absl::OkStatus() : Failure(errno, "truncate", path_);
}

absl::Status LocalFile::MoveTo(const std::string& path) const {
  if (fsync(fd_) != 0) return Failure(errno, "write", path_);
  if (std::rename(path_.c_str(), path.c_str()) != 0) return Failure(errno, "rename to", path);
  const std::string folder = std::filesystem::path(path).parent_path().string();
  const int fd = open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return Failure(errno, "open", folder);
  const bool synced = fsync(fd) == 0;
  const int error = errno;
  close(fd);
  return synced ? absl::OkStatus() : Failure(error, "write", folder);
}

absl::Status LocalFile::Hash(int64_t size, Sha256& hash) const {
  std::vector<char> buffer(1 << 20);
  for (int64_t offset = 0; offset < size;) {
    const int64_t wanted = std::min<int64_t>(size - offset, static_cast<int64_t>(buffer.size()));
    MENDEL_ASSIGN_OR_RETURN(const int64_t count, ReadAt(offset, buffer.data(), wanted));
    if (count == 0) return absl::AbortedError(Cat(path_, " became shorter while it was read"));
    hash.Update(std::string_view(buffer.data(), static_cast<size_t>(count)));
    offset += count;
  }
  return absl::OkStatus();
}

}  // namespace mendel
