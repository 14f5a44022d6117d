#include "server/observed_store.h"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "google/rpc/error_details.pb.h"
#include "server/trace_parent.h"
#include "server/tracer.h"

namespace mendel::server {
namespace {

std::string KindLabel(v1::Verdict::Kind kind) {
  std::string name = v1::Verdict::Kind_Name(kind).substr(std::strlen("KIND_"));
  for (char& c : name)
    c = c == '_' ? '-' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return name;
}

/// ErrorInfo.reason; the message may quote the model.
std::string ReasonOf(const google::rpc::Status& error) {
  google::rpc::ErrorInfo info;
  for (const auto& detail : error.details()) {
    if (detail.UnpackTo(&info)) return info.reason();
  }
  return "";
}

std::string_view EventOf(v1::JobState state) {
  if (state == v1::JOB_STATE_SUCCEEDED) return "job succeeded";
  return state == v1::JOB_STATE_CANCELLED ? "job ended as cancelled" : "job failed";
}

/// Phases come from our own command, but labels are kept for ever: a few words at most.
std::string PhaseLabel(const std::string& phase) {
  for (char c : phase) {
    if (std::islower(static_cast<unsigned char>(c)) == 0 && c != '-' && c != '_') return "other";
  }
  return phase.empty() || phase.size() > 24 ? "other" : phase;
}

class ObservedStore final : public JobStore {
 public:
  ObservedStore(std::unique_ptr<JobStore> jobs, const Clock& clock, const Observers& observers)
      : jobs_(std::move(jobs)),
        clock_(clock),
        metrics_(observers.metrics),
        log_(observers.log),
        tracer_(observers.tracer) {}

  absl::Status AppendEvent(const std::string& name, int64_t fence, v1::JobEvent event) override {
    const std::string phase = event.has_progress() ? PhaseLabel(event.progress().phase()) : "";
    const absl::Status status = jobs_->AppendEvent(name, fence, std::move(event));
    if (status.ok() && !phase.empty()) Enter(name, phase);
    return status;
  }
  absl::Status Finish(const std::string& name, int64_t fence, const Outcome& outcome) override {
    const absl::Status status = jobs_->Finish(name, fence, outcome);
    // The worker tries again where the store did not answer.
    if (absl::IsUnavailable(status) || absl::IsResourceExhausted(status)) return status;
    const Attempt attempt = Leave(name);
    if (!status.ok()) return status;
    if (outcome.verdict)
      metrics_.Add("mendel_verdicts_total", {{"kind", KindLabel(outcome.verdict->kind())}});
    const double seconds = SecondsSince(attempt.since_micros);
    metrics_.Observe("mendel_job_duration_seconds", {}, seconds);
    const bool failed = outcome.state == v1::JOB_STATE_FAILED;
    const std::string reason = ReasonOf(outcome.error);
    EndSpan(name, attempt, EventOf(outcome.state), failed ? reason : "");
    log_.Log(failed ? LogLevel::kWarning : LogLevel::kInfo, EventOf(outcome.state),
             {{"job", name},
              {"client", attempt.client},
              {"attempt", attempt.number},
              {"seconds", seconds},
              {"trace", TraceIdOf(attempt.span)},
              {"plan", outcome.plan ? outcome.plan->name() : ""},
              {"reason", reason}});
    return status;
  }
  absl::Status Release(const std::string& name, int64_t fence, bool counts) override {
    const Attempt attempt = Leave(name);
    const absl::Status status = jobs_->Release(name, fence, counts);
    const std::string_view event = counts ? "job tried again" : "job put back";
    EndSpan(name, attempt, event, counts ? "WORKER_KILLED" : "");
    log_.Log(counts ? LogLevel::kWarning : LogLevel::kInfo, event,
             {{"job", name},
              {"client", attempt.client},
              {"attempt", attempt.number},
              {"seconds", SecondsSince(attempt.since_micros)}});
    return status;
  }

  absl::StatusOr<StoredJob> Submit(const v1::JobSpec& spec, const std::string& client,
                                   const std::string& request_id, int32_t priority,
                                   const SubmitOptions& options) override {
    return jobs_->Submit(spec, client, request_id, priority, options);
  }
  absl::StatusOr<std::optional<std::string>> FindRequest(const std::string& client,
                                                         const std::string& request_id,
                                                         const v1::JobSpec& spec) override {
    return jobs_->FindRequest(client, request_id, spec);
  }
  absl::StatusOr<std::string> RememberRequest(const std::string& client,
                                              const std::string& request_id,
                                              const v1::JobSpec& spec,
                                              const std::string& operation) override {
    return jobs_->RememberRequest(client, request_id, spec, operation);
  }
  absl::StatusOr<StoredJob> GetJob(const std::string& name) override { return jobs_->GetJob(name); }
  absl::StatusOr<Page<StoredJob>> ListJobs(const JobFilter& filter, int page_size,
                                           const std::string& token) override {
    return jobs_->ListJobs(filter, page_size, token);
  }
  absl::StatusOr<StoredJob> CancelJob(const std::string& name) override {
    return jobs_->CancelJob(name);
  }
  absl::Status DeleteJob(const std::string& name) override { return jobs_->DeleteJob(name); }
  absl::StatusOr<std::vector<v1::JobEvent>> Events(const std::string& name, int64_t after,
                                                   int limit) override {
    return jobs_->Events(name, after, limit);
  }
  absl::StatusOr<std::optional<StoredJob>> Claim(const std::string& owner, int64_t until,
                                                 const ClaimFilter& filter) override {
    auto job = jobs_->Claim(owner, until, filter);
    if (job.ok() && job->has_value()) Start(**job);
    return job;
  }
  absl::StatusOr<v1::JobState> Renew(const std::string& name, int64_t fence,
                                     int64_t until) override {
    return jobs_->Renew(name, fence, until);
  }
  absl::StatusOr<std::vector<std::string>> ExpireLeases(int64_t now, int max_attempts) override {
    return jobs_->ExpireLeases(now, max_attempts);
  }
  absl::StatusOr<std::map<v1::JobState, int64_t>> CountJobs() override {
    return jobs_->CountJobs();
  }
  absl::StatusOr<std::map<std::string, int64_t>> CountPendingByDevice() override {
    return jobs_->CountPendingByDevice();
  }
  uint64_t WaitForChange(uint64_t seen, int64_t timeout) override {
    return jobs_->WaitForChange(seen, timeout);
  }
  absl::StatusOr<v1::Model> PutModel(const v1::Model& model) override {
    return jobs_->PutModel(model);
  }
  absl::StatusOr<v1::Model> GetModel(const std::string& name) override {
    return jobs_->GetModel(name);
  }
  absl::StatusOr<Page<v1::Model>> ListModels(const ProjectFilter& project, int page_size,
                                             const std::string& token) override {
    return jobs_->ListModels(project, page_size, token);
  }
  absl::Status DeleteModel(const std::string& name) override { return jobs_->DeleteModel(name); }
  absl::StatusOr<v1::Plan> GetPlan(const std::string& name) override {
    return jobs_->GetPlan(name);
  }
  absl::StatusOr<Page<v1::Plan>> ListPlans(const ProjectFilter& project, const std::string& model,
                                           int page_size, const std::string& token) override {
    return jobs_->ListPlans(project, model, page_size, token);
  }
  absl::Status DeletePlan(const std::string& name) override { return jobs_->DeletePlan(name); }
  absl::StatusOr<std::optional<v1::Plan>> FindPlan(const std::string& key) override {
    return jobs_->FindPlan(key);
  }
  absl::Status RememberPlan(const std::string& key, const std::string& plan) override {
    return jobs_->RememberPlan(key, plan);
  }
  absl::Status ChargeUpload(const std::string& client, const std::string& file, int64_t bytes,
                            int64_t limit) override {
    return jobs_->ChargeUpload(client, file, bytes, limit);
  }
  absl::Status ForgetUpload(const std::string& client, const std::string& file) override {
    return jobs_->ForgetUpload(client, file);
  }
  absl::Status ForgetUploadsBefore(int64_t wall_micros,
                                   const std::set<std::string>& stored) override {
    return jobs_->ForgetUploadsBefore(wall_micros, stored);
  }
  absl::StatusOr<std::vector<std::string>> ReferencedBlobs() override {
    return jobs_->ReferencedBlobs();
  }
  absl::StatusOr<int64_t> DeleteEndedBefore(int64_t wall_micros) override {
    return jobs_->DeleteEndedBefore(wall_micros);
  }
  absl::StatusOr<std::vector<std::string>> Check() override { return jobs_->Check(); }

 private:
  /// A worker's attempt at a job, by this server.
  struct Attempt {
    std::string client;
    int64_t number = 0;
    std::string parent;  ///< trace parent of the submission
    std::string span;    ///< that of this attempt
    int64_t since_micros = 0;
    int64_t since_wall_micros = 0;
    std::string phase;
    int64_t phase_since_micros = 0;
    int64_t phase_since_wall_micros = 0;
  };
  void Start(StoredJob& stored) {
    const v1::Job& job = stored.job;
    metrics_.Add("mendel_jobs_started_total", {{"device", stored.device}}, 1);
    const int64_t created =
        job.create_time().seconds() * 1'000'000 + job.create_time().nanos() / 1000;
    const double waited = std::max(0.0, static_cast<double>(clock_.WallMicros() - created) * 1e-6);
    if (job.attempts() == 1) metrics_.Observe("mendel_job_queue_duration_seconds", {}, waited);
    log_.Log(LogLevel::kInfo, "job started",
             {{"job", job.name()},
              {"client", job.client()},
              {"device", stored.device},
              {"trace", TraceIdOf(stored.trace_parent)},
              {"attempt", int64_t{job.attempts()}},
              {"seconds_since_submit", waited}});
    const int64_t now = clock_.WallMicros();
    if (job.attempts() == 1)
      RecordBelow(stored.trace_parent, "queue", created, now, {{"mendel.job", job.name()}});
    Attempt attempt;
    attempt.client = job.client();
    attempt.number = job.attempts();
    attempt.parent = stored.trace_parent;
    attempt.span = tracer_.Begin(stored.trace_parent);
    attempt.since_micros = clock_.SteadyMicros();
    attempt.since_wall_micros = now;
    stored.trace_parent = attempt.span;
    const std::lock_guard<std::mutex> lock(mutex_);
    attempts_[job.name()] = std::move(attempt);
  }
  void RecordBelow(const std::string& parent, std::string_view name, int64_t begin, int64_t end,
                   std::vector<std::pair<std::string, LogValue>> attributes) {
    Span span{std::string(name), tracer_.Begin(parent), parent};
    span.begin_micros = begin;
    span.end_micros = std::max(begin, end);
    span.attributes = std::move(attributes);
    tracer_.Record(span);
  }
  /// The span of an attempt that has ended.
  void EndSpan(const std::string& job, const Attempt& attempt, std::string_view event,
               const std::string& error) {
    if (attempt.span.empty()) return;
    Span span{"job", attempt.span, attempt.parent};
    span.begin_micros = attempt.since_wall_micros;
    span.end_micros = clock_.WallMicros();
    span.attributes = {{"mendel.job", job},
                       {"mendel.attempt", attempt.number},
                       {"mendel.event", std::string(event)}};
    span.error = error;
    tracer_.Record(span);
  }
  void Enter(const std::string& job, const std::string& phase) {
    const int64_t now = clock_.SteadyMicros();
    const std::lock_guard<std::mutex> lock(mutex_);
    Attempt& attempt = attempts_[job];
    if (attempt.phase != phase) Count(attempt, now);
    if (attempt.phase == phase) return;
    attempt.phase = phase;
    attempt.phase_since_micros = now;
    attempt.phase_since_wall_micros = clock_.WallMicros();
  }
  Attempt Leave(const std::string& job) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = attempts_.extract(job);
    if (!found) return {};
    Count(found.mapped(), clock_.SteadyMicros());
    return found.mapped();
  }
  void Count(const Attempt& attempt, int64_t now) {
    if (attempt.phase.empty()) return;
    metrics_.Add("mendel_phase_seconds_total", {{"phase", attempt.phase}},
                 static_cast<double>(now - attempt.phase_since_micros) * 1e-6);
    RecordBelow(attempt.span, attempt.phase, attempt.phase_since_wall_micros, clock_.WallMicros(),
                {});
  }
  double SecondsSince(int64_t micros) const {
    return static_cast<double>(clock_.SteadyMicros() - micros) * 1e-6;
  }

  const std::unique_ptr<JobStore> jobs_;
  const Clock& clock_;
  Metrics& metrics_;
  Logger& log_;
  Tracer& tracer_;
  std::mutex mutex_;
  std::map<std::string, Attempt> attempts_;
};

}  // namespace

std::unique_ptr<JobStore> ObserveStore(std::unique_ptr<JobStore> jobs, const Clock& clock,
                                       const Observers& observers) {
  return std::make_unique<ObservedStore>(std::move(jobs), clock, observers);
}

}  // namespace mendel::server
