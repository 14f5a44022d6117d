#include "server/observed_store.h"

#include <cctype>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace mendel::server {
namespace {

std::string KindLabel(v1::Verdict::Kind kind) {
  std::string name = v1::Verdict::Kind_Name(kind).substr(std::strlen("KIND_"));
  for (char& c : name)
    c = c == '_' ? '-' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return name;
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
  ObservedStore(std::unique_ptr<JobStore> jobs, const Clock& clock, Metrics& metrics)
      : jobs_(std::move(jobs)), clock_(clock), metrics_(metrics) {}

  absl::Status AppendEvent(const std::string& name, int64_t fence, v1::JobEvent event) override {
    const std::string phase = event.has_progress() ? PhaseLabel(event.progress().phase()) : "";
    const absl::Status status = jobs_->AppendEvent(name, fence, std::move(event));
    if (status.ok() && !phase.empty()) Enter(name, phase);
    return status;
  }
  absl::Status Finish(const std::string& name, int64_t fence, const Outcome& outcome) override {
    const absl::Status status = jobs_->Finish(name, fence, outcome);
    Leave(name);
    if (status.ok() && outcome.verdict)
      metrics_.Add("mendel_verdicts_total", {{"kind", KindLabel(outcome.verdict->kind())}});
    return status;
  }
  absl::Status Release(const std::string& name, int64_t fence) override {
    Leave(name);
    return jobs_->Release(name, fence);
  }

  absl::StatusOr<StoredJob> Submit(const v1::JobSpec& spec, const std::string& client,
                                   const std::string& request_id, int32_t priority,
                                   const QueueLimits& limits) override {
    return jobs_->Submit(spec, client, request_id, priority, limits);
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
                                                 const std::vector<std::string>& devices) override {
    auto job = jobs_->Claim(owner, until, devices);
    if (job.ok() && job->has_value())
      metrics_.Add("mendel_jobs_started_total", {{"device", (*job)->device}}, 1);
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
  absl::StatusOr<Page<v1::Model>> ListModels(int page_size, const std::string& token) override {
    return jobs_->ListModels(page_size, token);
  }
  absl::Status DeleteModel(const std::string& name) override { return jobs_->DeleteModel(name); }
  absl::StatusOr<v1::Plan> GetPlan(const std::string& name) override {
    return jobs_->GetPlan(name);
  }
  absl::StatusOr<Page<v1::Plan>> ListPlans(const std::string& model, int page_size,
                                           const std::string& token) override {
    return jobs_->ListPlans(model, page_size, token);
  }
  absl::Status DeletePlan(const std::string& name) override { return jobs_->DeletePlan(name); }
  absl::StatusOr<std::optional<v1::Plan>> FindPlan(const std::string& key) override {
    return jobs_->FindPlan(key);
  }
  absl::Status RememberPlan(const std::string& key, const std::string& plan) override {
    return jobs_->RememberPlan(key, plan);
  }
  absl::StatusOr<std::vector<std::string>> ReferencedBlobs() override {
    return jobs_->ReferencedBlobs();
  }
  absl::StatusOr<int64_t> DeleteEndedBefore(int64_t wall_micros) override {
    return jobs_->DeleteEndedBefore(wall_micros);
  }
  absl::StatusOr<std::vector<std::string>> Check() override { return jobs_->Check(); }

 private:
  struct Phase {
    std::string name;
    int64_t since_micros = 0;
  };
  void Enter(const std::string& job, const std::string& phase) {
    const int64_t now = clock_.SteadyMicros();
    const std::lock_guard<std::mutex> lock(mutex_);
    Phase& current = phases_[job];
    Count(current, now);
    current = {phase, now};
  }
  void Leave(const std::string& job) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (const auto found = phases_.extract(job)) Count(found.mapped(), clock_.SteadyMicros());
  }
  void Count(const Phase& phase, int64_t now) {
    if (phase.name.empty()) return;
    metrics_.Add("mendel_phase_seconds_total", {{"phase", phase.name}},
                 static_cast<double>(now - phase.since_micros) * 1e-6);
  }

  const std::unique_ptr<JobStore> jobs_;
  const Clock& clock_;
  Metrics& metrics_;
  std::mutex mutex_;
  std::map<std::string, Phase> phases_;
};

}  // namespace

std::unique_ptr<JobStore> ObserveStore(std::unique_ptr<JobStore> jobs, const Clock& clock,
                                       Metrics& metrics) {
  return std::make_unique<ObservedStore>(std::move(jobs), clock, metrics);
}

}  // namespace mendel::server
