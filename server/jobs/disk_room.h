// Room on the disk where jobs run.
#ifndef MENDEL_SERVER_JOBS_DISK_ROOM_H_
#define MENDEL_SERVER_JOBS_DISK_ROOM_H_

#include <cstdint>
#include <string>

#include "server/jobs/worker_command.h"

namespace mendel::server {

/// Bytes that can be written on the disk of `folder`: 0 where it is read-only, takes no more files
/// or cannot be asked.
int64_t FreeBytesOf(const std::string& folder);

/// Bytes that an attempt may need on the disk of `folder`: twice its inputs, a copy of the
/// measurements in `profiles`, and 16 MiB; at most a quarter of the disk.
int64_t RoomFor(const WorkerCommand& command, const std::string& profiles,
                const std::string& folder);

}  // namespace mendel::server

#endif  // MENDEL_SERVER_JOBS_DISK_ROOM_H_
