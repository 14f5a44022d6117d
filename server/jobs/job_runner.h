// Takes jobs from the store and runs each in a process of its own.
//
// The process is the command `mendel` itself (`mendel optimize --json --progress-fd 3 ...`, `verify`, `refit`) in a private folder
// that holds read-only views of the job's blobs: what a job can do is what the command can do, and what is tested there is
// tested here. Around it: bubblewrap where probing shows that it works, otherwise rlimits, a seccomp filter, no network and the
// private folder alone. Progress comes over a pipe, one JSON object a line; the result is the command's facts and its files.
//
// A worker that crashes, is killed for its memory, hangs beyond its wall time or floods its pipes fails its job with a reason and a
// reproduction bundle, and nothing else. Jobs of a runner that is stopped go back to the queue (JobStore::Release); jobs of one
// that was killed come back when their leases end.
#ifndef MENDEL_SERVER_JOBS_JOB_RUNNER_H_
#define MENDEL_SERVER_JOBS_JOB_RUNNER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/clock.h"
#include "server/store/blob_store.h"
#include "server/store/job_store.h"

namespace mendel::server {

/// What a worker measures on: a backend's name, its identity on this machine and its instruction set (runtime/backend.h); or what
/// it only predicts for (runtime/offline_device.h).
struct WorkerDevice {
  std::string name;
  std::string identity;
  std::string isa;
  bool offline = false;
};

struct RunnerOptions {
  std::string executable;   ///< the `mendel` command; empty: this process's own
  std::string work_folder;  ///< private folders of jobs are made here, and removed
  std::string cache;        ///< profile cache shared by the jobs; empty: `<work_folder>/profiles.sqlite`
  std::string owner;        ///< name of this runner in leases; empty: host and pid
  int concurrent_jobs = 1;
  int64_t lease_micros = 30'000'000;
  int max_attempts = 3;
  int64_t default_budget_seconds = 60;
  int64_t max_budget_seconds = 3600;
  int64_t max_wall_seconds = 7200;
  int64_t max_memory_bytes = 0;  ///< of a worker; 0: half of the machine's (cgroup's) memory
  int64_t max_output_bytes = int64_t{16} << 30;
  int64_t max_log_bytes = 1 << 20;
  int64_t max_answer_bytes = int64_t{64} << 20;  ///< of the facts that a worker prints
  std::string sandbox = "auto";                  ///< "auto", "bubblewrap", "rlimits"
  /// Time between SIGTERM and SIGKILL of a search that is cancelled: it certifies its best so far.
  int64_t cancel_grace_micros = 120'000'000;
  /// Of this machine's workers. Empty: "cpu", and stored plans are served on this host only.
  std::vector<WorkerDevice> devices;
  /// That other workers of the store have: jobs may ask for them here.
  std::vector<std::string> other_devices;
  /// Version of the executable, part of what a stored plan is found by.
  std::string version;
};

/// Bytes that a worker may use: `max_memory_bytes`, or half of the machine's (control group's) memory.
int64_t MemoryLimit(const RunnerOptions& options);

/// Counters for the metrics endpoint.
struct RunnerStats {
  int64_t started = 0;
  int64_t succeeded = 0;
  int64_t failed = 0;
  int64_t cancelled = 0;
  int64_t running = 0;
  int64_t candidates = 0;
  int64_t lost = 0;     ///< attempts whose lease ended while they worked; what they did is thrown away
  int64_t refused = 0;  ///< results that came after the lease had been given to another
  std::string sandbox;  ///< what is used
};

class JobRunner {
 public:
  virtual ~JobRunner() = default;
  /// Starts no new jobs, asks running ones to stop, puts them back to the queue and returns once none is left or after the time.
  virtual void Drain(int64_t timeout_micros) = 0;
  virtual RunnerStats Stats() const = 0;
};

/// Starts the runner's threads. The stores and the clock outlive it. InvalidArgument for options that cannot work (a sandbox that
/// this machine lacks, a folder that cannot be made).
absl::StatusOr<std::unique_ptr<JobRunner>> StartJobRunner(const RunnerOptions& options, JobStore& jobs, BlobStore& blobs,
                                                          const Clock& clock);

/// Checks a spec against the options before it is queued: names well formed, budgets within limits, devices that the workers have.
/// InvalidArgument with the field's path in front ("spec.optimize.budget.time: ...").
absl::Status CheckSpec(const v1::JobSpec& spec, const RunnerOptions& options);
/// That a worker has the device that a refit needs (RefitDeviceOf; "" is "cpu"), before it is queued; other machines' count.
absl::Status CheckRefitDevice(const std::string& device, const RunnerOptions& options);
/// The devices alone, for the worker that is to do it: `other_devices` do not count.
absl::Status CheckDevice(const v1::JobSpec& spec, const RunnerOptions& options);

}  // namespace mendel::server

#endif  // MENDEL_SERVER_JOBS_JOB_RUNNER_H_
