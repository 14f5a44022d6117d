#include "onnx/mapped_file.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/status.h"

namespace mendel {
namespace {

class FileDescriptor {
 public:
  explicit FileDescriptor(int fd) : fd_(fd) {}
  ~FileDescriptor() {
    if (fd_ >= 0) close(fd_);
  }
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

absl::StatusOr<OwnedBytes> Map(const FileDescriptor& file, std::string_view shown) {
  struct stat info {};
  if (fstat(file.get(), &info) != 0)
    return InvalidInput("cannot examine '", shown, "': ", std::strerror(errno));
  if (!S_ISREG(info.st_mode)) return InvalidInput("'", shown, "' is not a regular file");
  const size_t size = static_cast<size_t>(info.st_size);
  if (size == 0) return OwnedBytes{};
  void* address = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (address == MAP_FAILED)
    return InvalidInput("cannot map '", shown, "': ", std::strerror(errno));
  std::shared_ptr<const void> owner(
      address, [size](const void* mapped) { munmap(const_cast<void*>(mapped), size); });
  return OwnedBytes{{static_cast<const std::byte*>(address), size}, std::move(owner), true};
}

}  // namespace

void ForgetPages(const OwnedBytes& bytes, std::span<const std::byte> part) {
  if (!bytes.mapped) return;
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const uintptr_t begin = (reinterpret_cast<uintptr_t>(part.data()) + page - 1) / page * page;
  const uintptr_t end = reinterpret_cast<uintptr_t>(part.data() + part.size()) / page * page;
  if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

absl::StatusOr<OwnedBytes> MapFile(const std::string& path) {
  // O_NONBLOCK: opening a pipe must not wait for a writer before it is refused.
  const FileDescriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) return absl::ErrnoToStatus(errno, Cat("cannot open '", path, "'"));
  return Map(file, path);
}

absl::StatusOr<OwnedBytes> ExternalFiles::Open(const std::string& location) {
  const auto known = open_.find(location);
  if (known != open_.end()) return known->second;
  if (directory_.empty())
    return InvalidInput("external data '", location, "' cannot be read: the model has no folder");
  if (location.empty() || location.find('\0') != std::string::npos)
    return InvalidInput("external data has a bad location");
  const FileDescriptor folder(open(directory_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (folder.get() < 0)
    return InvalidInput("cannot open the model's folder: ", std::strerror(errno));
  open_how how{};
  how.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  const FileDescriptor file(
      static_cast<int>(syscall(SYS_openat2, folder.get(), location.c_str(), &how, sizeof(how))));
  if (file.get() < 0) {
    return InvalidInput("external data '", location,
                        "' cannot be opened beneath the model's folder: ", std::strerror(errno));
  }
  struct stat info {};
  if (fstat(file.get(), &info) != 0)
    return InvalidInput("cannot examine external data '", location, "'");
  if (S_ISREG(info.st_mode) && info.st_nlink != 1)
    return InvalidInput("external data '", location, "' has several hard links");
  MENDEL_ASSIGN_OR_RETURN(OwnedBytes bytes, Map(file, location));
  open_[location] = bytes;
  return bytes;
}

}  // namespace mendel
