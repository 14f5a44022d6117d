#include "server/daemon.h"

#include <malloc.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <set>
#include <system_error>
#include <utility>

#include "base/status.h"
#include "server/http_listener.h"
#include "server/jobs/job_runner.h"
#include "server/jobs/work_key.h"
#include "server/metrics.h"
#include "server/observed_store.h"
#include "server/readiness.h"
#include "server/rpc/environment.h"
#include "server/rpc/rpc_server.h"
#include "server/store/blob_store.h"
#include "server/store/fsck.h"
#include "server/store/garbage.h"
#include "server/store/job_store.h"
#include "server/store/postgres_module.h"
#include "server/web/web_page.h"

// The command is linked with jemalloc, which has this function; libraries and tests lack it.
extern "C" int mallctl(const char* name, void* old, size_t* old_size, void* fresh, size_t size)
    __attribute__((weak));

namespace mendel::server {
namespace {

constexpr int64_t kSecond = 1'000'000;
constexpr int64_t kLeaseTicks = 5;
constexpr int64_t kSweepTicks = 3600;
constexpr int64_t kReadinessTicks = 5;

absl::Status MakeFolder(std::string_view option, const std::string& path) {
  if (mkdir(path.c_str(), 0700) == 0 || errno == EEXIST) return absl::OkStatus();
  return absl::NotFoundError(Cat(option, ": cannot make ", path, ": ", std::strerror(errno)));
}

/// Checks that others cannot plant a link in the folder. A missing folder is good.
absl::Status CheckWorkFolder(const std::string& path) {
  struct stat info {};
  if (path.empty() || stat(path.c_str(), &info) != 0) return absl::OkStatus();
  if (!S_ISDIR(info.st_mode)) return InvalidInput("work: ", path, " is no folder");
  if (info.st_uid != geteuid() || (info.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return InvalidInput(
        "work: ", path,
        " can be written to by others: name a folder within it, which will be made");
  }
  return absl::OkStatus();
}

std::string StateLabel(v1::JobState state) {
  std::string name = v1::JobState_Name(state).substr(std::strlen("JOB_STATE_"));
  for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return name;
}

double HeapBytes() {
  if (mallctl != nullptr) {
    uint64_t epoch = 1;  // a new epoch refreshes the numbers
    size_t size = sizeof epoch;
    mallctl("epoch", &epoch, &size, &epoch, size);
    size_t allocated = 0;
    size = sizeof allocated;
    if (mallctl("stats.allocated", &allocated, &size, nullptr, 0) == 0)
      return static_cast<double>(allocated);
  }
  const struct mallinfo2 info = mallinfo2();
  return static_cast<double>(info.uordblks) + static_cast<double>(info.hblkhd);
}

double ResidentBytes() {
  std::FILE* file = std::fopen("/proc/self/statm", "r");
  if (file == nullptr) return 0;
  int64_t pages = 0;
  int64_t resident = 0;
  if (std::fscanf(file, "%ld %ld", &pages, &resident) != 2) resident = 0;
  std::fclose(file);
  return static_cast<double>(resident) * static_cast<double>(sysconf(_SC_PAGESIZE));
}

class RealDaemon final : public Daemon {
 public:
  RealDaemon(const ServerOptions& options, BuildInfo build, const Clock& clock, Logger& log)
      : options_(options), build_(std::move(build)), clock_(clock), log_(log) {}
  ~RealDaemon() override {
    if (rpc_ != nullptr) Drain();
  }

  absl::Status Open() {
    MENDEL_RETURN_IF_ERROR(MakeFolder("data", options_.data));
    // Workers read the blobs from their own folders, where relative paths would be wrong.
    std::error_code code;
    options_.data = std::filesystem::absolute(options_.data, code).string();
    if (code) return absl::ErrnoToStatus(code.value(), "data");
    MENDEL_ASSIGN_OR_RETURN(tracer_, Tracer::Open(options_.trace_file, build_.version, log_));
    MENDEL_ASSIGN_OR_RETURN(jobs_, OpenStore());
    MENDEL_ASSIGN_OR_RETURN(
        blobs_,
        OpenBlobStore(options_.data,
                      {options_.max_blob_bytes, options_.max_store_bytes, options_.min_free_bytes},
                      clock_));
    MENDEL_ASSIGN_OR_RETURN(authenticator_, Authenticator::Create(options_, log_));
    runner_options_ = options_.runner;
    MENDEL_RETURN_IF_ERROR(CheckWorkFolder(runner_options_.work_folder));
    if (runner_options_.work_folder.empty()) runner_options_.work_folder = options_.data + "/work";
    MENDEL_RETURN_IF_ERROR(MakeFolder("work", runner_options_.work_folder));
    if (options_.concurrent_jobs > 0) {
      MENDEL_ASSIGN_OR_RETURN(runner_, StartJobRunner(runner_options_, *jobs_, *blobs_, clock_));
    }
    const std::function<std::string(const v1::JobSpec&)> key = [this](const v1::JobSpec& spec) {
      return WorkKey(spec, runner_options_);
    };
    environment_ = std::unique_ptr<Environment>(new Environment{
        options_, *jobs_, *blobs_, clock_, log_, metrics_, *authenticator_, *tracer_, key});
    NameQueues();
    metrics_.AddCollector([this](Metrics& metrics) { Collect(metrics); });
    metrics_.Set("process_start_time_seconds", {}, static_cast<double>(clock_.WallMicros()) * 1e-6);
    metrics_.Set("mendel_build_info", {{"version", build_.version}, {"commit", build_.commit}}, 1);
    MENDEL_ASSIGN_OR_RETURN(rpc_, StartRpcServer(*environment_));
    if (!options_.metrics_listen.empty()) {
      const HttpHandler handler = [this](const HttpRequest& request) {
        return MetricsPage(request.path);
      };
      MENDEL_ASSIGN_OR_RETURN(http_, StartHttpListener(options_.metrics_listen,
                                                       options_.max_http_connections, handler));
    }
    return StartPage();
  }

  void Tick() override {
    ++ticks_;
    if (ticks_ % options_.certificate_refresh_seconds == 0) authenticator_->Refresh();
    if (ticks_ % kReadinessTicks == 1) UpdateReadiness();
    if (ticks_ % kLeaseTicks == 1) ExpireLeases();
    if (ticks_ % kSweepTicks == 1) Sweep();
  }

  void Reload() override {
    authenticator_->Refresh();
    tracer_->Reopen();
  }

  void BeginDrain() override {
    if (std::exchange(draining_, true)) return;
    log_.Log(LogLevel::kInfo, "draining");
    rpc_->BeginDrain();
    if (runner_ != nullptr) runner_->StopClaiming();
  }

  bool JobsFinished() const override { return runner_ == nullptr || runner_->Finished(); }

  void Drain() override {
    BeginDrain();
    if (runner_ != nullptr) runner_->Drain(options_.drain_seconds * kSecond);
    rpc_->Stop(options_.drain_seconds * kSecond);
    runner_.reset();
    http_.reset();
    page_listener_.reset();
    page_.reset();
    rpc_.reset();
    log_.Log(LogLevel::kInfo, "drained");
  }

  RpcServer& rpc() override { return *rpc_; }
  int metrics_port() const override { return http_ == nullptr ? 0 : http_->port(); }
  int page_port() const override { return page_listener_ == nullptr ? 0 : page_listener_->port(); }

 private:
  absl::StatusOr<std::unique_ptr<JobStore>> OpenStore() {
    absl::StatusOr<std::unique_ptr<JobStore>> store =
        options_.store.empty() ? OpenSqliteStore(Cat(options_.data, "/", kJobStoreFile), clock_)
                               : OpenPostgresStore(options_.store, clock_);
    MENDEL_RETURN_IF_ERROR(Annotate(store.status(), options_.store.empty() ? "data" : "store"));
    return ObserveStore(*std::move(store), clock_, {metrics_, log_, *tracer_});
  }

  absl::Status StartPage() {
    const PageAddress where = PageAddressOf(options_);
    if (where.address.empty()) return absl::OkStatus();
    page_ = std::make_unique<WebPage>(*environment_, build_.version, runner_options_);
    auto listener = StartHttpListener(
        where.address, options_.max_http_connections,
        [this](const HttpRequest& request) { return page_->Answer(request); }, true);
    if (!listener.ok() && where.must) return Annotate(listener.status(), "http-port");
    if (!listener.ok()) {
      log_.Log(LogLevel::kWarning, "no web page",
               {{"error", std::string(listener.status().message())}});
      return absl::OkStatus();
    }
    page_listener_ = *std::move(listener);
    return absl::OkStatus();
  }

  HttpResponse MetricsPage(const std::string& path) {
    if (path == "/metrics")
      return {200, "text/plain; version=0.0.4; charset=utf-8", metrics_.Text()};
    if (path == "/livez") return {200, "text/plain; charset=utf-8", "alive\n"};
    if (path == "/readyz") return ReadyPage();
    return {404, "text/plain; charset=utf-8",
            "metrics are at /metrics, readiness at /readyz, liveness at /livez\n"};
  }

  HttpResponse ReadyPage() {
    const std::lock_guard<std::mutex> lock(readiness_mutex_);
    const bool ready = readiness_.jobs.ok() && readiness_.uploads.ok() && !environment_->draining;
    return {ready ? 200 : 503, "text/plain; charset=utf-8",
            Cat(ReadinessText(readiness_), environment_->draining ? "draining\n" : "")};
  }

  /// Checks the stores, and logs what has changed.
  void UpdateReadiness() {
    const Readiness now = CheckReadiness(*jobs_, *blobs_);
    rpc_->SetHealth(now.jobs.ok(), now.uploads.ok());
    metrics_.Set("mendel_ready", {{"check", "jobs"}}, now.jobs.ok() ? 1 : 0);
    metrics_.Set("mendel_ready", {{"check", "uploads"}}, now.uploads.ok() ? 1 : 0);
    LogReadiness("jobs", readiness_.jobs, now.jobs);
    LogReadiness("uploads", readiness_.uploads, now.uploads);
    const std::lock_guard<std::mutex> lock(readiness_mutex_);
    readiness_ = now;
  }

  void LogReadiness(std::string_view check, const absl::Status& before, const absl::Status& now) {
    if (before.ok() == now.ok()) return;
    log_.Log(now.ok() ? LogLevel::kInfo : LogLevel::kError, now.ok() ? "ready again" : "not ready",
             {{"check", std::string(check)}, {"error", std::string(now.message())}});
  }

  void Collect(Metrics& metrics) {
    if (const auto counts = jobs_->CountJobs(); counts.ok()) {
      for (int state = v1::JOB_STATE_PENDING; state <= v1::JOB_STATE_CANCELLED; ++state) {
        const auto found = counts->find(static_cast<v1::JobState>(state));
        const double count = found == counts->end() ? 0 : static_cast<double>(found->second);
        metrics.Set("mendel_jobs", {{"state", StateLabel(static_cast<v1::JobState>(state))}},
                    count);
      }
    }
    CollectQueue(metrics);
    if (const auto bytes = blobs_->TotalBytes(); bytes.ok())
      metrics.Set("mendel_blob_bytes", {}, static_cast<double>(*bytes));
    metrics.Set("mendel_disk_free_bytes", {}, static_cast<double>(blobs_->FreeBytes()));
    metrics.Set("mendel_draining", {}, environment_->draining ? 1 : 0);
    metrics.Set("mendel_watchers", {}, static_cast<double>(environment_->watchers.taken()));
    metrics.Set("process_heap_bytes", {}, HeapBytes());
    metrics.Set("process_resident_memory_bytes", {}, ResidentBytes());
    if (runner_ != nullptr) CollectRunner(runner_->Stats(), metrics);
  }

  /// Pending jobs by required device. A reported queue stays, at 0 when it is empty: autoscalers
  /// would take a missing value for a failure.
  void CollectQueue(Metrics& metrics) {
    const auto counts = jobs_->CountPendingByDevice();
    if (!counts.ok()) return;
    const std::lock_guard<std::mutex> lock(queues_mutex_);
    for (const auto& [device, count] : *counts) queues_.insert(device);
    for (const std::string& device : queues_) {
      const auto found = counts->find(device);
      metrics.Set("mendel_queue_depth", {{"device", device}},
                  found == counts->end() ? 0 : static_cast<double>(found->second));
    }
  }

  /// Queues reported from the start: those of the machine's devices, and those that the options
  /// name for other workers.
  void NameQueues() {
    for (const WorkerDevice& device : runner_options_.devices) {
      if (!device.offline) queues_.insert(device.name);
    }
    queues_.insert(runner_options_.other_devices.begin(), runner_options_.other_devices.end());
    if (runner_ == nullptr) return;
    for (const std::string& device : queues_)
      metrics_.Add("mendel_jobs_started_total", {{"device", device}}, 0);
  }

  static void CollectRunner(const RunnerStats& stats, Metrics& metrics) {
    metrics.Set("mendel_workers_running", {}, static_cast<double>(stats.running));
    metrics.Set("mendel_candidates_total", {}, static_cast<double>(stats.candidates));
    metrics.Set("mendel_jobs_ended_total", {{"state", "succeeded"}},
                static_cast<double>(stats.succeeded));
    metrics.Set("mendel_jobs_ended_total", {{"state", "failed"}},
                static_cast<double>(stats.failed));
    metrics.Set("mendel_jobs_ended_total", {{"state", "cancelled"}},
                static_cast<double>(stats.cancelled));
    metrics.Set("mendel_jobs_retried_total", {}, static_cast<double>(stats.retried));
    metrics.Set("mendel_leases_lost_total", {{"at", "work"}}, static_cast<double>(stats.lost));
    metrics.Set("mendel_leases_lost_total", {{"at", "result"}}, static_cast<double>(stats.refused));
  }

  void ExpireLeases() {
    const auto expired = jobs_->ExpireLeases(clock_.WallMicros(), runner_options_.max_attempts);
    if (!expired.ok()) return Failed("leases", expired.status());
    for (const std::string& job : *expired)
      log_.Log(LogLevel::kWarning, "lease ended", {{"job", job}});
  }

  void Sweep() {
    const int64_t hour = 3600 * kSecond;
    GarbagePolicy policy;
    policy.retain_jobs_micros = options_.retain_jobs_hours * hour;
    policy.retain_blobs_micros = options_.retain_blobs_hours * hour;
    policy.target_bytes = options_.target_bytes;
    const auto report = CollectGarbage(*jobs_, *blobs_, policy, clock_.WallMicros());
    if (!report.ok()) return Failed("garbage collection", report.status());
    if (report->jobs + report->bytes > 0) {
      log_.Log(LogLevel::kInfo, "garbage collected",
               {{"jobs", report->jobs}, {"bytes", report->bytes}});
    }
  }

  void Failed(std::string_view what, const absl::Status& status) {
    log_.Log(LogLevel::kError, Cat(what, " failed"), {{"error", std::string(status.message())}});
  }

  ServerOptions options_;
  const BuildInfo build_;
  const Clock& clock_;
  Logger& log_;
  Metrics metrics_;
  RunnerOptions runner_options_;
  std::unique_ptr<Tracer> tracer_;
  std::unique_ptr<JobStore> jobs_;
  std::unique_ptr<BlobStore> blobs_;
  std::unique_ptr<Authenticator> authenticator_;
  std::unique_ptr<JobRunner> runner_;
  std::unique_ptr<Environment> environment_;
  std::unique_ptr<RpcServer> rpc_;
  std::unique_ptr<HttpListener> http_;
  std::unique_ptr<WebPage> page_;
  std::unique_ptr<HttpListener> page_listener_;
  bool draining_ = false;
  std::mutex queues_mutex_;
  std::set<std::string> queues_ = {"cpu"};
  std::mutex readiness_mutex_;  // Tick, which alone writes, reads without it
  Readiness readiness_;
  int64_t ticks_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Daemon>> Daemon::Start(const ServerOptions& options,
                                                      const BuildInfo& build, const Clock& clock,
                                                      Logger& log) {
  auto daemon = std::make_unique<RealDaemon>(options, build, clock, log);
  MENDEL_RETURN_IF_ERROR(daemon->Open());
  return std::unique_ptr<Daemon>(std::move(daemon));
}

absl::Status CheckConfig(const ServerOptions& options) {
  MENDEL_RETURN_IF_ERROR(CheckOptions(options));
  MENDEL_RETURN_IF_ERROR(CheckCertificates(options));
  MENDEL_RETURN_IF_ERROR(CheckWorkFolder(options.runner.work_folder));
  Logger quiet(LogLevel::kError, SystemClock(), [](const std::string&) {});
  MENDEL_RETURN_IF_ERROR(Authenticator::Create(options, quiet).status());
  if (access(options.data.c_str(), F_OK) == 0 &&
      access(options.data.c_str(), R_OK | W_OK | X_OK) != 0) {
    return absl::PermissionDeniedError(Cat("data: ", options.data, " cannot be written to"));
  }
  if (options.store.empty()) return absl::OkStatus();
  return Annotate(OpenPostgresDatabase(options.store).status(), "store");
}

}  // namespace mendel::server
