// The backends of this machine's workers, for RunnerOptions::devices.
#ifndef MENDEL_SERVER_JOBS_DEVICES_H_
#define MENDEL_SERVER_JOBS_DEVICES_H_

#include <vector>

#include "server/jobs/job_runner.h"

namespace mendel::server {

/// Backends linked into this program that can run here. `mendel serve` is the same program as its
/// workers.
std::vector<WorkerDevice> DevicesOfThisMachine();

}  // namespace mendel::server

#endif  // MENDEL_SERVER_JOBS_DEVICES_H_
