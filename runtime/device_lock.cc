#include "runtime/device_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "base/deadline.h"
#include "base/status.h"

namespace mendel {
namespace {

absl::Status FileError(const std::string& path, const char* what) {
  return absl::UnavailableError(Cat("cannot ", what, " ", path, ": ", std::strerror(errno)));
}

/// Anyone may open it for reading, which flock is content with. O_CREAT on another user's file is
/// refused in sticky folders, hence the two steps.
absl::StatusOr<int> OpenShared(const std::string& path) {
  for (int tries = 0; tries < 3; ++tries) {
    int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (file >= 0) return file;
    if (errno ==
        EACCES) {  // perhaps another user makes it just now, and has not opened it to all yet
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      continue;
    }
    if (errno != ENOENT) break;
    file = open(path.c_str(), O_RDONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (file >= 0) {
      fchmod(file, 0644);  // whatever the umask
      return file;
    }
    if (errno != EEXIST) break;
  }
  return FileError(path, "open");
}

/// False when somebody has removed the file meanwhile: a lock on it would exclude nobody.
bool IsStillThere(int file, const std::string& path) {
  struct stat ours {
  }, there{};
  return fstat(file, &ours) == 0 && stat(path.c_str(), &there) == 0 &&
         ours.st_ino == there.st_ino && ours.st_dev == there.st_dev;
}

/// The locked file, or -1 while another process has it.
absl::StatusOr<int> TryLock(const std::string& path) {
  MENDEL_ASSIGN_OR_RETURN(const int file, OpenShared(path));
  const bool locked = flock(file, LOCK_EX | LOCK_NB) == 0;
  if (locked && IsStillThere(file, path)) return file;
  const int error = errno;
  close(file);
  if (locked || error == EWOULDBLOCK || error == EINTR) return -1;
  errno = error;
  return FileError(path, "lock");
}

}  // namespace

absl::StatusOr<std::unique_ptr<DeviceLock>> DeviceLock::Take(std::string_view name,
                                                             const LockWait& wait) {
  const bool valid = !name.empty() && std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return std::isalnum(c) || c == '-';
  });
  if (!valid) return InvalidInput("'", name, "' cannot name a lock");
  const char* folder = std::getenv("MENDEL_LOCK_DIR");
  const std::string path = Cat(folder == nullptr ? "/tmp" : folder, "/mendel-", name, ".lock");
  const Deadline deadline = Deadline::After(wait.seconds);
  for (bool reported = false;; reported = true) {
    MENDEL_ASSIGN_OR_RETURN(const int file, TryLock(path));
    if (file >= 0) return std::unique_ptr<DeviceLock>(new DeviceLock(file));
    if (wait.interrupted != nullptr && wait.interrupted->load()) {
      return absl::CancelledError(Cat("interrupted while another process measures on ", name));
    }
    if (deadline.Passed()) {
      return absl::UnavailableError(Cat("another process still measures on ", name, " after ",
                                        wait.seconds, " s of waiting: it holds the lock on ",
                                        path));
    }
    if (!reported && wait.report != nullptr) {
      wait.report(Cat("waits up to ", wait.seconds, " s for another process that measures on ",
                      name, " (it holds ", path, ")"));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

DeviceLock::~DeviceLock() { close(file_); }  // which unlocks it

}  // namespace mendel
