// The key under which a finished search's plan is stored and found again.
#ifndef MENDEL_SERVER_JOBS_WORK_KEY_H_
#define MENDEL_SERVER_JOBS_WORK_KEY_H_

#include <string>

#include "mendel/v1/jobs.pb.h"
#include "server/jobs/job_runner.h"

namespace mendel::server {

/// SHA-256 over everything that a search's result depends on: the model's content, every option of
/// the spec (defaults spelled out, the memory and wall time that a job may take left out), the
/// device's identity and the program's version. Empty for other work.
std::string WorkKey(const v1::JobSpec& spec, const RunnerOptions& options);

}  // namespace mendel::server

#endif  // MENDEL_SERVER_JOBS_WORK_KEY_H_
