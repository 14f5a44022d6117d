// The command line of `mendel` that does a job, and the files it needs.
#ifndef MENDEL_SERVER_JOBS_WORKER_COMMAND_H_
#define MENDEL_SERVER_JOBS_WORKER_COMMAND_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/jobs/job_runner.h"
#include "server/jobs/sandbox.h"

namespace mendel::server {

/// Name within out/ of the plan that a worker writes.
inline constexpr const char* kPlanFile = "result.plan";

struct WorkerCommand {
  std::vector<std::string> arguments;  ///< paths are relative to the job's folder
  std::vector<View> views;
  bool searches = false;  ///< uses the profile cache, and SIGTERM makes it deliver its best so far
  bool makes_plan = false;  ///< otherwise a verdict
  std::string model;        ///< model of the plan that is made
};

/// Stored times stand for the defaults of `options`. NotFound when a model, plan or blob is not
/// there (any more); InvalidArgument for manifests whose paths leave their folder.
absl::StatusOr<WorkerCommand> MakeWorkerCommand(const v1::JobSpec& spec,
                                                const RunnerOptions& options, JobStore& jobs,
                                                BlobStore& blobs);

/// Seconds of a duration, `absent` when it is zero.
double SecondsOr(const google::protobuf::Duration& duration, double absent);

}  // namespace mendel::server

#endif  // MENDEL_SERVER_JOBS_WORKER_COMMAND_H_
