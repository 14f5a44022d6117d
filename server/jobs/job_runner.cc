#include "server/jobs/job_runner.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/status.h"
#include "server/jobs/job_attempt.h"
#include "server/jobs/job_folder.h"
#include "server/jobs/sandbox.h"

namespace mendel::server {
namespace {

constexpr int64_t kIdleMicros = 1'000'000;
constexpr int kMostJobs = 1024;

class Runner final : public JobRunner {
 public:
  Runner(RunnerOptions options, JobStore& jobs, BlobStore& blobs, const Clock& clock,
         std::unique_ptr<Sandbox> sandbox)
      : options_(std::move(options)),
        sandbox_(std::move(sandbox)),
        context_{options_, jobs, blobs, clock, *sandbox_} {
    for (const WorkerDevice& device : options_.devices) devices_.push_back(device.name);
    for (int i = 0; i < options_.concurrent_jobs; ++i)
      threads_.emplace_back([this] { ClaimJobs(); });
    threads_.emplace_back([this] { ExpireLeases(); });
  }

  ~Runner() override {
    Stop();
    for (std::thread& thread : threads_) thread.join();
  }

  void StopClaiming() override {
    const std::scoped_lock lock(mutex_);
    closing_ = true;
    changed_.notify_all();
  }

  bool Finished() const override {
    const std::scoped_lock lock(mutex_);
    return finished_ == options_.concurrent_jobs;
  }

  void Drain(int64_t timeout_micros) override {
    Stop();
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::microseconds(timeout_micros),
                      [this] { return finished_ == options_.concurrent_jobs; });
  }

  RunnerStats Stats() const override {
    const RunnerCounters& counters = context_.counters;
    return {counters.started, counters.succeeded,     counters.failed, counters.cancelled,
            counters.running, counters.candidates,    counters.lost,   counters.refused,
            counters.retried, sandbox_->Description()};
  }

 private:
  void Stop() {
    const std::scoped_lock lock(mutex_);
    context_.draining = closing_ = true;
    changed_.notify_all();
  }

  /// Sleeps, or ends early when the runner stops.
  void Pause(int64_t micros) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::microseconds(micros),
                      [this] { return context_.draining.load(); });
  }

  void ClaimJobs() {
    uint64_t seen = 0;
    while (!closing_) {
      // The number first: what changes after the claim is noticed.
      seen = context_.jobs.WaitForChange(seen, 0);
      const auto job =
          context_.jobs.Claim(options_.owner, context_.clock.WallMicros() + options_.lease_micros,
                              {devices_, options_.running_per_client});
      if (!job.ok()) {
        Pause(kIdleMicros);
      } else if (!job->has_value()) {
        context_.jobs.WaitForChange(seen, kIdleMicros);
      } else if (!RunAttempt(**job, context_)) {
        Pause(kIdleMicros);
      }
    }
    const std::scoped_lock lock(mutex_);
    ++finished_;
    changed_.notify_all();
  }

  void ExpireLeases() {
    while (!context_.draining) {
      context_.jobs.ExpireLeases(context_.clock.WallMicros(), options_.max_attempts)
          .status()
          .IgnoreError();
      const auto ended = [this](const std::string& job) {
        const auto stored = context_.jobs.GetJob(job);
        return stored.ok() ? stored->job.has_end_time() : absl::IsNotFound(stored.status());
      };
      SweepJobFolders(options_.work_folder, ended,
                      [this](const std::string& folder) { sandbox_->EndStrays(folder); });
      Pause(std::max<int64_t>(options_.lease_micros / 3, 100'000));
    }
  }

  const RunnerOptions options_;
  const std::unique_ptr<Sandbox> sandbox_;
  RunnerContext context_;
  std::vector<std::string> devices_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::atomic<bool> closing_{false};
  int finished_ = 0;
  std::vector<std::thread> threads_;
};

int64_t GroupMemory() {
  std::ifstream file("/sys/fs/cgroup/memory.max");
  int64_t bytes = 0;
  return file >> bytes ? bytes : 0;
}

std::string Owner() {
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  return Cat(name.data(), ":", getpid());
}

absl::Status FillIn(RunnerOptions& options) {
  if (options.concurrent_jobs < 1 || options.concurrent_jobs > kMostJobs)
    return InvalidInput("concurrent jobs: 1 to ", kMostJobs);
  if (options.lease_micros < 100'000) return InvalidInput("a lease lasts at least 0.1 seconds");
  std::error_code code;
  if (options.executable.empty()) options.executable = "/proc/self/exe";
  options.executable = std::filesystem::canonical(options.executable, code).string();
  if (code || access(options.executable.c_str(), X_OK) != 0)
    return InvalidInput("the worker's executable cannot be run");
  if (options.work_folder.empty()) return InvalidInput("no folder for workers is named");
  std::filesystem::create_directories(std::filesystem::path(options.work_folder) / "jobs", code);
  if (!code) options.work_folder = std::filesystem::canonical(options.work_folder, code).string();
  if (code) return InvalidInput("the folder for workers cannot be made: ", code.message());
  if (options.cache.empty()) options.cache = options.work_folder + "/profiles.sqlite";
  if (options.owner.empty()) options.owner = Owner();
  return absl::OkStatus();
}

}  // namespace

int64_t MemoryLimit(const RunnerOptions& options) {
  if (options.max_memory_bytes > 0) return options.max_memory_bytes;
  const int64_t machine = static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGE_SIZE);
  const int64_t group = GroupMemory();
  return (group > 0 ? std::min(group, machine) : machine) / 2;
}

absl::StatusOr<std::unique_ptr<JobRunner>> StartJobRunner(const RunnerOptions& options,
                                                          JobStore& jobs, BlobStore& blobs,
                                                          const Clock& clock) {
  RunnerOptions filled = options;
  MENDEL_RETURN_IF_ERROR(FillIn(filled));
  auto sandbox = ChooseSandbox(filled.sandbox, filled.executable, filled.work_folder);
  if (!sandbox.ok()) return InvalidInput(std::string(sandbox.status().message()));
  return std::make_unique<Runner>(std::move(filled), jobs, blobs, clock, *std::move(sandbox));
}

}  // namespace mendel::server
