// Takes jobs from the store and runs each in a process of its own.
//
// The process is the command `mendel` itself (`mendel optimize --json --progress-fd 3 ...`,
// `verify`, `rebind`) in a private folder with read-only views of the job's blobs. A job can do
// exactly what the command can, and the command's tests cover it. Bubblewrap confines it where
// probing succeeds. Otherwise rlimits, a seccomp filter, no network and the private folder do.
// Progress comes over a pipe, one JSON object a line. The result is the command's facts and its
// files.
//
// A worker that is killed from outside is started again (max_attempts). A worker that crashes,
// exceeds its memory, hangs beyond its wall time or floods its pipes fails only its own job, with a
// reason and a reproduction bundle. Jobs of a stopped runner return to the queue
// (JobStore::Release); jobs of a killed one return when their leases end.
#ifndef MENDEL_SERVER_JOBS_JOB_RUNNER_H_
#define MENDEL_SERVER_JOBS_JOB_RUNNER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "server/clock.h"
#include "server/store/blob_store.h"
#include "server/store/job_store.h"

namespace mendel::server {

/// The device of a worker's measurements: a backend's name, its identity here and its instruction
/// set (runtime/backend.h). Or the target of its predictions (runtime/offline_device.h).
struct WorkerDevice {
  std::string name;
  std::string identity;
  std::string isa;
  bool offline = false;
};

struct RunnerOptions {
  std::string executable;   ///< the `mendel` command; empty: this process's own
  std::string work_folder;  ///< private folders of jobs are made here, and removed
  std::string cache;  ///< profile cache shared by the jobs; empty: `<work_folder>/profiles.sqlite`
  std::string owner;  ///< name of this runner in leases; empty: host and pid
  int concurrent_jobs = 1;
  int64_t lease_micros = 30'000'000;
  int64_t running_per_client = 0;  ///< ClaimFilter::running_per_client
  int max_attempts = 5;  ///< of a job whose worker or server is killed, or cannot read or write
  int64_t default_budget_seconds = 60;
  int64_t max_budget_seconds = 3600;
  int64_t max_wall_seconds = 7200;
  int64_t max_memory_bytes = 0;  ///< of a worker; 0: half of the machine's (cgroup's) memory
  int64_t max_output_bytes = int64_t{16} << 30;
  int64_t max_log_bytes = 1 << 20;
  int64_t max_answer_bytes = int64_t{64} << 20;  ///< of the facts that a worker prints
  std::string sandbox = "auto";                  ///< "auto", "bubblewrap", "rlimits"
  /// Time between SIGTERM and SIGKILL of a canceled search, which answers within two seconds.
  int64_t cancel_grace_micros = 5'000'000;
  /// Devices of this machine's workers. Empty: "cpu", and this host alone serves stored plans.
  std::vector<WorkerDevice> devices;
  /// Devices of other servers of the store: jobs may request them here.
  std::vector<std::string> other_devices;
  /// Names of the optimizer's rules, sorted: a spec may disable these. Empty: any.
  std::vector<std::string> rules;
  /// Reads a spec's shapes ("x:1x3x224x224,y:1x10"); InvalidArgument for what the worker would
  /// refuse. Empty: not checked.
  std::function<absl::Status(std::string_view shapes)> check_shapes;
  /// Bytes free on the disk of a folder. Empty: the system is asked; tests have others.
  std::function<int64_t(const std::string& folder)> free_bytes;
  /// Version of the executable, part of the key of a stored plan.
  std::string version;
};

/// Memory limit of a worker in bytes: `max_memory_bytes`, or half of the machine's (control
/// group's) memory.
int64_t MemoryLimit(const RunnerOptions& options);

/// Counters for the metrics endpoint.
struct RunnerStats {
  int64_t started = 0;
  int64_t succeeded = 0;
  int64_t failed = 0;
  int64_t cancelled = 0;
  int64_t running = 0;
  int64_t candidates = 0;
  int64_t lost = 0;  ///< attempts whose lease ended while they worked; what they did is thrown away
  int64_t refused = 0;  ///< results that came after the lease had been given to another
  int64_t retried = 0;  ///< attempts that were repeated: their worker was killed from outside, or
                        ///< could not read or write
  std::string sandbox;  ///< what is used
};

class JobRunner {
 public:
  virtual ~JobRunner() = default;
  /// Starts no new jobs; running ones go on.
  virtual void StopClaiming() = 0;
  /// True when, after StopClaiming, no job is left.
  virtual bool Finished() const = 0;
  /// Starts no new jobs, stops running ones and returns them to the queue. Returns when none is
  /// left or the time is over.
  virtual void Drain(int64_t timeout_micros) = 0;
  virtual RunnerStats Stats() const = 0;
};

/// Starts the runner's threads. The stores and the clock outlive it. InvalidArgument for invalid
/// options (a sandbox that this machine lacks, a folder that cannot be created).
absl::StatusOr<std::unique_ptr<JobRunner>> StartJobRunner(const RunnerOptions& options,
                                                          JobStore& jobs, BlobStore& blobs,
                                                          const Clock& clock);

/// Checks a spec against the options before it is queued: names well formed, budgets within limits,
/// devices that the workers have. InvalidArgument with the field's path in front
/// ("spec.optimize.budget.time: ...").
absl::Status CheckSpec(const v1::JobSpec& spec, const RunnerOptions& options);
/// Checks, before a rebind is queued, that a worker has its device (RebindDeviceOf; "" is "cpu");
/// other machines' workers count.
absl::Status CheckRebindDevice(const std::string& device, const RunnerOptions& options);
/// Checks only the devices, for the worker that runs the job: `other_devices` do not count.
absl::Status CheckDevice(const v1::JobSpec& spec, const RunnerOptions& options);

}  // namespace mendel::server

#endif  // MENDEL_SERVER_JOBS_JOB_RUNNER_H_
