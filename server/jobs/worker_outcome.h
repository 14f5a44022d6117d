// The outcome of a job whose worker has ended.
//
//   worker                                job
//   exit 0 with a plan or a verdict       SUCCEEDED
//   `verify`: exit 1 or 3 with a verdict  SUCCEEDED (the verdict is the answer)
//   exit 2; exit 1, 3 of others           FAILED, the command's own code and sentence
//   exit 5, every time                    likewise
//   exit 4 or an unreadable answer        FAILED, INTERNAL (WORKER_INTERNAL), bundle
//   a signal                              FAILED, INTERNAL (WORKER_CRASHED), bundle
//   killed from outside, every time       FAILED, UNAVAILABLE (WORKER_KILLED), bundle
//   out of memory                         FAILED, RESOURCE_EXHAUSTED (WORKER_OUT_OF_MEMORY), bundle
//   beyond its wall time                  FAILED, DEADLINE_EXCEEDED (WORKER_TIMEOUT), bundle
//   too much output                       FAILED, RESOURCE_EXHAUSTED (WORKER_OUTPUT), bundle
//   canceled, and no plan delivered       CANCELLED
//
// Reasons in capitals are google.rpc.ErrorInfo.reason, domain "mendel". Those of the command are
// INVALID_INPUT, UNSUPPORTED, REFUSED, UNDECIDED and INPUT_OUTPUT. A bundle reproduces the
// failure.
#ifndef MENDEL_SERVER_JOBS_WORKER_OUTCOME_H_
#define MENDEL_SERVER_JOBS_WORKER_OUTCOME_H_

#include <map>
#include <string>

#include "server/jobs/job_folder.h"
#include "server/jobs/job_runner.h"
#include "server/jobs/watch_worker.h"
#include "server/jobs/worker_command.h"

namespace mendel::server {

struct EndedWorker {
  const StoredJob& job;
  const WorkerCommand& command;
  const WorkerLimitsWatched& limits;
  const WorkerResult& result;
  bool cancelled = false;  ///< its owner had requested it
  std::string sandbox;
};

/// A sentence with what is known of a worker that ended as kKilled.
std::string WhyKilled(const EndedWorker& worker);

google::rpc::Status MakeError(absl::StatusCode code, const std::string& reason,
                              const std::string& message,
                              const std::map<std::string, std::string>& metadata = {});

/// Takes the delivered plan or the bundle into the blob store. Unavailable and similar errors when
/// it cannot: try again.
absl::StatusOr<Outcome> MakeOutcome(const EndedWorker& worker, const JobFolder& folder,
                                    const RunnerOptions& options, BlobStore& blobs,
                                    const Clock& clock);

}  // namespace mendel::server

#endif  // MENDEL_SERVER_JOBS_WORKER_OUTCOME_H_
