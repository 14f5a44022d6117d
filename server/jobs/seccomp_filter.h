// The system calls that a worker may make: those for files, threads and arithmetic. It may not
// reach other processes, the network or the kernel's administration.
#ifndef MENDEL_SERVER_JOBS_SECCOMP_FILTER_H_
#define MENDEL_SERVER_JOBS_SECCOMP_FILTER_H_

#include <linux/filter.h>

#include <vector>

#include "absl/status/statusor.h"

namespace mendel::server {

/// Forbidden calls fail with EPERM (clone3: ENOSYS, so that threads are made with clone, whose
/// flags can be seen). New processes are forbidden, threads are not. `alone`: the worker has a
/// process namespace of its own and may send signals to all its processes. Otherwise it may signal
/// itself only (kOwnPid in child_process.h).
absl::StatusOr<std::vector<sock_filter>> WorkerFilter(bool alone);

}  // namespace mendel::server

#endif  // MENDEL_SERVER_JOBS_SECCOMP_FILTER_H_
