#include "server/jobs/disk_room.h"

#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

namespace mendel::server {
namespace {

int64_t SizeOf(const std::string& path) {
  std::error_code unknown;
  const auto size = std::filesystem::file_size(path, unknown);
  return unknown ? 0 : static_cast<int64_t>(size);
}

}  // namespace

int64_t FreeBytesOf(const std::string& folder) {
  struct statvfs disk {};
  if (statvfs(folder.c_str(), &disk) != 0 || (disk.f_flag & ST_RDONLY) != 0) return 0;
  if (disk.f_files > 0 && disk.f_ffree == 0) return 0;
  const auto blocks = geteuid() == 0 ? disk.f_bfree : disk.f_bavail;
  return static_cast<int64_t>(blocks) * static_cast<int64_t>(disk.f_frsize);
}

int64_t RoomFor(const WorkerCommand& command, const std::string& profiles,
                const std::string& folder) {
  int64_t bytes = (int64_t{16} << 20) + SizeOf(profiles);
  for (const View& view : command.views) bytes += 2 * SizeOf(view.source);
  struct statvfs disk {};
  if (statvfs(folder.c_str(), &disk) != 0) return bytes;
  return std::min(bytes,
                  static_cast<int64_t>(disk.f_blocks / 4) * static_cast<int64_t>(disk.f_frsize));
}

}  // namespace mendel::server
