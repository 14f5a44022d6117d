#include "server/store/blob_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <system_error>

#include "base/status.h"

namespace mendel::server {
namespace {

constexpr int64_t kBuffer = int64_t{1} << 20;

int64_t Micros(const timespec& time) {
  return int64_t{time.tv_sec} * 1'000'000 + time.tv_nsec / 1000;
}

FileInfo ToInfo(const struct stat& info) {
  return {static_cast<int64_t>(info.st_size), Micros(info.st_mtim),
          static_cast<uint64_t>(info.st_ino)};
}

}  // namespace

Fd::~Fd() {
  if (fd_ >= 0) close(fd_);
}

absl::Status FileError(std::string_view what, int error) {
  const std::string text = Cat(what, ": ", std::generic_category().message(error));
  switch (error) {
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
      return absl::ResourceExhaustedError(text);
    case EACCES:
    case EPERM:
      return absl::PermissionDeniedError(text);
    case ENOENT:
      return absl::NotFoundError(text);
    default:  // EROFS among them: a disk after an error, which is no client's lack of rights
      return absl::UnavailableError(text);
  }
}

absl::StatusOr<Fd> OpenFolder(int parent, const std::string& name) {
  constexpr int kFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
  Fd folder(openat(parent, name.c_str(), kFlags));
  if (folder.ok()) return folder;
  if (errno != ENOENT) return FileError("folder of the blob store", errno);
  if (mkdirat(parent, name.c_str(), 0700) != 0 && errno != EEXIST)
    return FileError("folder of the blob store", errno);
  MENDEL_RETURN_IF_ERROR(SyncFolder(parent));
  folder = Fd(openat(parent, name.c_str(), kFlags));
  if (!folder.ok()) return FileError("folder of the blob store", errno);
  return folder;
}

Fd ExistingFolder(int parent, const std::string& name) {
  return Fd(openat(parent, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

absl::StatusOr<Fd> OpenFile(int folder, const std::string& name, int flags, mode_t mode) {
  Fd file(openat(folder, name.c_str(), flags | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, mode));
  if (!file.ok())
    return errno == ENOENT ? absl::NotFoundError("no such blob")
                           : FileError("opening a blob", errno);
  struct stat info = {};
  if (fstat(file.get(), &info) != 0) return FileError("opening a blob", errno);
  if (!S_ISREG(info.st_mode) || info.st_nlink > 1)
    return absl::DataLossError("a blob is not a file of its own");
  return file;
}

absl::Status SyncFolder(int folder) {
  return fsync(folder) == 0 ? absl::OkStatus() : FileError("syncing a folder", errno);
}

std::optional<FileInfo> Inspect(int folder, const std::string& name) {
  struct stat info = {};
  if (fstatat(folder, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(info.st_mode))
    return std::nullopt;
  return ToInfo(info);
}

absl::StatusOr<FileInfo> Inspect(int file) {
  struct stat info = {};
  if (fstat(file, &info) != 0) return FileError("inspecting a blob", errno);
  return ToInfo(info);
}

absl::StatusOr<std::vector<std::string>> Names(int folder) {
  // A descriptor of its own: reading a folder moves its position.
  const int copy = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (copy < 0) return FileError("listing a folder", errno);
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(fdopendir(copy), &closedir);
  if (stream == nullptr) {
    close(copy);
    return FileError("listing a folder", errno);
  }
  std::vector<std::string> names;
  // readdir is safe: nobody else has this stream.
  while (const dirent* entry = readdir(stream.get())) {  // NOLINT(concurrency-mt-unsafe)
    const std::string name = static_cast<const char*>(entry->d_name);
    if (name != "." && name != "..") names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

absl::Status SetTime(int file, int64_t micros) {
  timespec times[2] = {};  // NOLINT(modernize-avoid-c-arrays): futimens takes one
  times[0].tv_nsec = UTIME_OMIT;
  times[1].tv_sec = micros / 1'000'000;
  times[1].tv_nsec = micros % 1'000'000 * 1000;
  if (micros < 0) times[1] = {};
  return futimens(file, times) == 0 ? absl::OkStatus() : FileError("setting a blob's time", errno);
}

absl::Status HashFile(int file, int64_t size, Sha256& hash) {
  const auto buffer = std::make_unique<std::byte[]>(kBuffer);  // NOLINT(modernize-avoid-c-arrays)
  for (int64_t done = 0; done < size;) {
    const ssize_t got =
        pread(file, buffer.get(), static_cast<size_t>(std::min(kBuffer, size - done)), done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return FileError("reading a blob", errno);
    if (got == 0) return absl::DataLossError("a blob is shorter than it should be");
    hash.Update(std::span(buffer.get(), static_cast<size_t>(got)));
    ForgetPages(file, done, got);
    done += got;
  }
  return absl::OkStatus();
}

void ForgetPages(int file, int64_t offset, int64_t length) {
  constexpr int64_t kSmall = int64_t{16} << 20;
  if (offset + length > kSmall) posix_fadvise(file, offset, length, POSIX_FADV_DONTNEED);
}

}  // namespace mendel::server
