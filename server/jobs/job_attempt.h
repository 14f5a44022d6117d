// One attempt at one job: from the claim to its outcome.
#ifndef MENDEL_SERVER_JOBS_JOB_ATTEMPT_H_
#define MENDEL_SERVER_JOBS_JOB_ATTEMPT_H_

#include <atomic>
#include <mutex>

#include "server/jobs/job_runner.h"
#include "server/jobs/sandbox.h"

namespace mendel::server {

struct RunnerCounters {
  std::atomic<int64_t> started = 0, succeeded = 0, failed = 0, cancelled = 0, running = 0,
                       candidates = 0, lost = 0, refused = 0, retried = 0;
};

/// Shared state of a runner's attempts; outlives them.
struct RunnerContext {
  const RunnerOptions& options;
  JobStore& jobs;
  BlobStore& blobs;
  const Clock& clock;
  const Sandbox& sandbox;
  std::mutex merging = {};  ///< MergeProfiles
  std::atomic<bool> draining = false;
  RunnerCounters counters = {};
};

/// Runs the claimed job and stores its outcome. Returns it to the queue when the runner drains or
/// this machine cannot start it. Returns whether the machine works (false: wait before the next
/// claim).
bool RunAttempt(const StoredJob& job, RunnerContext& context);

}  // namespace mendel::server

#endif  // MENDEL_SERVER_JOBS_JOB_ATTEMPT_H_
