// The system calls of a worker: what reading files, threads and arithmetic need; nothing that
// reaches other processes, the network or the kernel's administration.
#ifndef MENDEL_SERVER_JOBS_SECCOMP_FILTER_H_
#define MENDEL_SERVER_JOBS_SECCOMP_FILTER_H_

#include <linux/filter.h>

#include <vector>

#include "absl/status/statusor.h"

namespace mendel::server {

/// Forbidden calls fail with EPERM (clone3: ENOSYS, so that threads are made with clone, whose
/// flags can be seen). New processes are forbidden, threads are not. `alone`: the worker has a
/// process namespace of its own and may send signals in it; otherwise only to itself (kOwnPid in
/// child_process.h).
absl::StatusOr<std::vector<sock_filter>> WorkerFilter(bool alone);

}  // namespace mendel::server

#endif  // MENDEL_SERVER_JOBS_SECCOMP_FILTER_H_
