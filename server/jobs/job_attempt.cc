#include "server/jobs/job_attempt.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <thread>
#include <utility>

#include "base/status.h"
#include "server/jobs/disk_room.h"
#include "server/jobs/job_folder.h"
#include "server/jobs/lease_keeper.h"
#include "server/jobs/profile_exchange.h"
#include "server/jobs/watch_worker.h"
#include "server/jobs/work_key.h"
#include "server/jobs/worker_command.h"
#include "server/jobs/worker_outcome.h"
#include "server/store/project_name.h"

namespace mendel::server {
namespace {

constexpr int kCpusAtMost = 1024;
/// The fence of a job's first claim. (Attempts are taken back when a job is released.)
constexpr int64_t kFirstFence = 1;
/// The command's exit code where it cannot read or write.
constexpr int kInputOutput = 5;
/// A job that waits for room on the disk lets others have its turn after this time.
constexpr int64_t kMostWaitMicros = 60'000'000;

bool MayPass(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsResourceExhausted(status) ||
         absl::IsDeadlineExceeded(status);
}

/// The longest time of a job that names none. It follows the search's budget: import, certificate
/// and gate have limits of their own, which half an hour covers.
double WallSeconds(const v1::JobSpec& spec, const RunnerOptions& options) {
  const double most = static_cast<double>(options.max_wall_seconds);
  if (!spec.has_optimize()) return most;
  const double budget = SecondsOr(spec.optimize().budget().time(),
                                  static_cast<double>(options.default_budget_seconds));
  return std::min(most, 1800 + 4 * budget);
}

WorkerLimitsWatched LimitsOf(const v1::JobSpec& spec, const RunnerOptions& options) {
  WorkerLimitsWatched limits;
  const v1::Budget& budget = spec.optimize().budget();
  limits.wall_micros =
      static_cast<int64_t>(SecondsOr(budget.wall_time(), WallSeconds(spec, options)) * 1e6);
  limits.memory_bytes = budget.memory_bytes() > 0 ? budget.memory_bytes() : MemoryLimit(options);
  limits.output_bytes = options.max_output_bytes;
  limits.log_bytes = options.max_log_bytes;
  limits.answer_bytes = options.max_answer_bytes;
  return limits;
}

class Attempt {
 public:
  Attempt(const StoredJob& job, RunnerContext& context)
      : job_(job), context_(context), options_(context.options) {}

  bool Run() {
    key_ = WorkKey(job_.job.spec(), options_);
    if (ServeStored()) return true;
    const absl::Status prepared = Prepare();
    if (absl::IsNotFound(prepared) || absl::IsInvalidArgument(prepared)) {
      Fail(MakeError(prepared.code(), absl::IsNotFound(prepared) ? "MISSING" : "INVALID_INPUT",
                     std::string(prepared.message())));
      return true;
    }
    if (!prepared.ok()) {
      PutBack();
      return false;
    }
    Work();
    return true;
  }

 private:
  std::string Name() const { return job_.job.name(); }
  std::string SharedProfiles() const { return ProfilesOf(options_.cache, ProjectOf(Name())); }

  /// A plan of the same work by an earlier job.
  bool ServeStored() {
    if (key_.empty()) return false;
    const auto plan = context_.jobs.FindPlan(key_);
    if (!plan.ok() || !plan->has_value()) return false;
    const auto blob = ParseBlobName((*plan)->blob());
    if (!blob.ok() || !context_.blobs.Contains(*blob)) return false;
    v1::JobEvent event;
    event.mutable_progress()->set_phase("stored plan");
    event.mutable_progress()->set_best_speedup((*plan)->speedup());
    context_.jobs.AppendEvent(Name(), job_.fence, event).IgnoreError();
    Outcome outcome;
    outcome.state = v1::JOB_STATE_SUCCEEDED;
    outcome.plan = **plan;
    Finish(outcome);
    return true;
  }

  absl::Status Prepare() {
    MENDEL_RETURN_IF_ERROR(CheckDevice(job_.job.spec(), options_));
    MENDEL_ASSIGN_OR_RETURN(
        command_, MakeWorkerCommand(job_.job.spec(), options_, context_.jobs, context_.blobs));
    MENDEL_ASSIGN_OR_RETURN(folder_, JobFolder::Open(options_.work_folder, Name(), job_.fence));
    // Without the others' measurements a job takes longer, no more.
    if (command_.searches) CopyProfiles(SharedProfiles(), folder_->CachePath()).IgnoreError();
    limits_ = LimitsOf(job_.job.spec(), options_);
    const int64_t cpus = std::clamp<int64_t>(std::thread::hardware_concurrency(), 1, kCpusAtMost);
    const Launch launch{
        options_.executable,
        command_.arguments,
        folder_->path(),
        command_.views,
        {limits_.memory_bytes, (limits_.wall_micros / 1'000'000 + 1) * cpus, limits_.output_bytes},
        job_.fence > kFirstFence,
        job_.trace_parent};
    absl::StatusOr<std::unique_ptr<ChildProcess>> child = context_.sandbox.Start(launch);
    // Whatever it is, it is this machine's trouble and not the job's.
    if (!child.ok()) return absl::UnavailableError(child.status().message());
    child_ = *std::move(child);
    return absl::OkStatus();
  }

  void Work() {
    LeaseKeeper keeper(job_, command_.searches, context_);
    const WorkerCallbacks callbacks = {[&](std::string_view line) { keeper.Progress(line); },
                                       [&] { return keeper.Decide(); }};
    const WorkerResult result = WatchWorker(*child_, *folder_, limits_, callbacks, context_.clock);
    child_.reset();
    keeper.ReportRest();
    if (command_.searches) Merge();
    if (keeper.lost()) {
      ++context_.counters.lost;
      return folder_->Clear(true);
    }
    if (result.end == WorkerEnd::kStopped && !keeper.cancelled()) return PutBack();
    EndedWorker worker{job_,   command_,           limits_,
                       result, keeper.cancelled(), context_.sandbox.Description()};
    if (result.end == WorkerEnd::kKilled && !keeper.cancelled() &&
        job_.job.attempts() < options_.max_attempts)
      return TryAgain(WhyKilled(worker), /*counts=*/true);
    if (result.end == WorkerEnd::kExited && result.state.code == kInputOutput &&
        !keeper.cancelled() && Recover(keeper))
      return;
    worker.cancelled = keeper.cancelled();
    Deliver(worker, keeper);
  }

  void Warn(const std::string& sentence) {
    v1::JobEvent event;
    event.set_warning(sentence);
    context_.jobs.AppendEvent(Name(), job_.fence, event).IgnoreError();
  }

  /// The end of the worker says nothing of the job. The owner reads why the job takes longer.
  void TryAgain(const std::string& why, bool counts) {
    Warn(Cat(why, "; the job is tried again"));
    ++context_.counters.retried;
    Release(counts);
    folder_->Clear(true);
  }

  /// The worker could not read or write. The job waits for some time while the disk is full, and is
  /// tried again; that counts as an attempt where the disk was not full. False: it has failed.
  bool Recover(LeaseKeeper& keeper) {
    folder_->Clear(true);
    const auto ask = options_.free_bytes ? options_.free_bytes : &FreeBytesOf;
    const int64_t needed = RoomFor(command_, SharedProfiles(), options_.work_folder);
    const int64_t kept = folder_->Used().bytes;
    const int64_t end = context_.clock.SteadyMicros() + kMostWaitMicros;
    bool waited = false;
    while (ask(options_.work_folder) + kept < needed && context_.clock.SteadyMicros() < end) {
      if (!waited)
        Warn(Cat("the disk where jobs run is full: the job waits for ", needed, " bytes"));
      waited = true;
      keeper.Decide();
      if (keeper.lost()) {
        ++context_.counters.lost;
        return true;
      }
      if (keeper.cancelled()) return false;
      if (context_.draining) {
        PutBack();
        return true;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(500));
    }
    if (!waited && job_.job.attempts() >= options_.max_attempts) return false;
    TryAgain("the worker could not read or write", /*counts=*/!waited);
    return true;
  }

  void Deliver(const EndedWorker& worker, LeaseKeeper& keeper) {
    while (true) {
      auto outcome = MakeOutcome(worker, *folder_, options_, context_.blobs, context_.clock);
      if (outcome.ok()) {
        const bool whole = outcome->plan.has_value() && !worker.result.terminated;
        // With the outcome, in one transaction: a twin that waits is answered by this plan.
        if (whole) outcome->work_key = key_;
        Finish(*outcome);
        return folder_->Clear(false);
      }
      if (!MayPass(outcome.status())) {
        Fail(MakeError(absl::StatusCode::kInternal, "STORE", "the job's result cannot be stored"));
        return folder_->Clear(false);
      }
      // A full disk: the result waits for room while the lease is ours.
      keeper.Decide();
      if (keeper.lost() || context_.draining) return PutBack();
      std::this_thread::sleep_for(std::chrono::milliseconds(500));
    }
  }

  void Merge() {
    const std::scoped_lock lock(context_.merging);
    MergeProfiles(folder_->CachePath(), SharedProfiles()).IgnoreError();
  }

  void Fail(google::rpc::Status error) {
    Outcome outcome;
    outcome.state = v1::JOB_STATE_FAILED;
    outcome.error = std::move(error);
    Finish(outcome);
  }

  /// Tries again while the store cannot be reached: a long search should not be lost to a
  /// restarting database. Somebody else's lease (Aborted) ends it.
  bool Finish(const Outcome& outcome) {
    absl::Status status = context_.jobs.Finish(Name(), job_.fence, outcome);
    for (int tries = 0; MayPass(status) && tries < 600 && !context_.draining; ++tries) {
      std::this_thread::sleep_for(std::chrono::milliseconds(500));
      status = context_.jobs.Finish(Name(), job_.fence, outcome);
    }
    RunnerCounters& counters = context_.counters;
    if (absl::IsAborted(status)) ++counters.refused;
    if (!status.ok()) return false;
    ++(outcome.state == v1::JOB_STATE_SUCCEEDED   ? counters.succeeded
       : outcome.state == v1::JOB_STATE_CANCELLED ? counters.cancelled
                                                  : counters.failed);
    return true;
  }

  void PutBack() {
    Release(/*counts=*/false);
    if (folder_ != nullptr) folder_->Clear(true);
  }

  /// Tries again for a while, also when the server stops: a job that keeps its lease waits until it
  /// expires.
  void Release(bool counts) {
    for (int tries = 0; tries < 20; ++tries) {
      if (!MayPass(context_.jobs.Release(Name(), job_.fence, counts))) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(500));
    }
  }

  const StoredJob& job_;
  RunnerContext& context_;
  const RunnerOptions& options_;
  std::string key_;
  WorkerCommand command_;
  std::unique_ptr<JobFolder> folder_;
  WorkerLimitsWatched limits_;
  std::unique_ptr<ChildProcess> child_;
};

}  // namespace

bool RunAttempt(const StoredJob& job, RunnerContext& context) {
  ++context.counters.started;
  ++context.counters.running;
  const bool works = Attempt(job, context).Run();
  --context.counters.running;
  return works;
}

}  // namespace mendel::server
