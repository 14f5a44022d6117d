// Watches one worker process until it has ended: drains its pipes and enforces its limits.
#ifndef MENDEL_SERVER_JOBS_WATCH_WORKER_H_
#define MENDEL_SERVER_JOBS_WATCH_WORKER_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "server/clock.h"
#include "server/jobs/child_process.h"
#include "server/jobs/job_folder.h"

namespace mendel::server {

/// The reason for a worker's end.
enum class WorkerEnd {
  kExited,   ///< by itself, with a code
  kCrashed,  ///< by a signal of its own fault
  kKilled,   ///< by SIGKILL or SIGTERM of somebody else, or of the kernel for want of memory
  kMemory,   ///< out of memory, or above its limit
  kWallTime,
  kOutput,   ///< too much on a pipe or too large files
  kStopped,  ///< the watcher's caller ordered it
};

struct WorkerLimitsWatched {
  int64_t wall_micros = 0;
  int64_t memory_bytes = 0;
  int64_t output_bytes = 0;  ///< files
  int64_t answer_bytes = int64_t{64} << 20;
  int64_t log_bytes = 1 << 20;  ///< and progress at the start
  int64_t progress_bytes_per_second = 64 << 10;
  int64_t files = 100'000;
};

enum class Order { kGoOn, kTerminate, kKill };

struct WorkerCallbacks {
  /// A line on the progress pipe, without its end.
  std::function<void(std::string_view line)> progress;
  /// Called about every tenth of a second. kTerminate is carried out once (SIGTERM), kKill ends the
  /// worker as kStopped.
  std::function<Order()> order;
};

struct WorkerResult {
  WorkerEnd end = WorkerEnd::kExited;
  ExitState state;
  std::string what;    ///< of kOutput: what there was too much of
  std::string answer;  ///< standard output
  std::string log;     ///< the end of standard error
  bool terminated = false;
  int64_t memory_bytes = 0;  ///< the most that was seen
};

WorkerResult WatchWorker(ChildProcess& child, const JobFolder& folder,
                         const WorkerLimitsWatched& limits, const WorkerCallbacks& callbacks,
                         const Clock& clock);

}  // namespace mendel::server

#endif  // MENDEL_SERVER_JOBS_WATCH_WORKER_H_
