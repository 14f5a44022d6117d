#include "server/jobs/disk_room.h"

#include <sys/statvfs.h>

#include <filesystem>
#include <system_error>

namespace mendel::server {

int64_t FreeBytesOf(const std::string& folder) {
  struct statvfs disk {};
  if (statvfs(folder.c_str(), &disk) != 0 || (disk.f_flag & ST_RDONLY) != 0) return 0;
  return static_cast<int64_t>(disk.f_bavail) * static_cast<int64_t>(disk.f_frsize);
}

int64_t RoomFor(const WorkerCommand& command) {
  int64_t bytes = int64_t{16} << 20;
  for (const View& view : command.views) {
    std::error_code unknown;
    const auto size = std::filesystem::file_size(view.source, unknown);
    if (!unknown) bytes += 2 * static_cast<int64_t>(size);
  }
  return bytes;
}

}  // namespace mendel::server
