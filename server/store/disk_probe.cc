#include "server/store/disk_probe.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/status.h"

namespace mendel::server {
namespace {

bool TakesChanges(int file) {
  struct statvfs disk {};
  if (fstatvfs(file, &disk) == 0 && (disk.f_flag & ST_RDONLY) != 0) return false;
  // The first block, again and again: a file system that refuses changes says so before it looks
  // whether there is anything to do.
  while (fallocate(file, FALLOC_FL_KEEP_SIZE, 0, 1) != 0) {
    if (errno == EINTR) continue;
    return errno == ENOSPC || errno == EDQUOT || errno == EFBIG || errno == EOPNOTSUPP ||
           errno == ENOSYS;
  }
  return true;
}

}  // namespace

absl::StatusOr<std::unique_ptr<DiskProbe>> DiskProbe::Open(const std::string& folder) {
  Fd file(open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (!file.ok() &&
      (errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL)) {  // this file system cannot
    std::string name = folder + "/probe-XXXXXX";
    file = Fd(mkostemp(name.data(), O_CLOEXEC));
    if (file.ok()) unlink(name.c_str());
  }
  if (!file.ok()) return FileError("probing a disk", errno);
  return std::unique_ptr<DiskProbe>(new DiskProbe(std::move(file)));
}

absl::Status DiskProbe::Check() {
  if (!failed_ && !TakesChanges(file_.get())) failed_ = true;
  if (!failed_) return absl::OkStatus();
  return absl::UnavailableError(
      "the disk failed while it was written to; the server must be started again");
}

}  // namespace mendel::server
