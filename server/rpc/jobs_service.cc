#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "base/status.h"
#include "mendel/v1/jobs.grpc.pb.h"
#include "server/rpc/admit.h"
#include "server/rpc/errors.h"
#include "server/rpc/names.h"
#include "server/rpc/request_project.h"
#include "server/rpc/services.h"
#include "server/rpc/unary.h"

namespace mendel::server {
namespace {

constexpr std::string_view kWatch = "/mendel.v1.Jobs/WatchJob";
/// Events that one watcher has in memory at most.
constexpr int kBatch = 64;

/// Sends a job's events. It reads the journal only when what it read before has been sent: its
/// queue is bounded, a slow watcher costs nobody anything, and when it lags by a whole batch it
/// leaves out progress that newer progress has overtaken.
class Watcher final : public grpc::ServerWriteReactor<v1::JobEvent> {
 public:
  Watcher(Environment& env, AdmittedWait admitted, const v1::WatchJobRequest& request)
      : env_(env),
        permit_(std::move(admitted.permit)),
        span_(std::move(admitted.span)),
        name_(request.name()),
        after_(request.after_sequence()),
        stepper_(env.hub, env.pool, [this] { return Step(); }) {
    stepper_.Start();
  }
  void OnWriteDone(bool ok) override {
    if (!ok) cancelled_ = true;
    stepper_.Resume();
  }
  void OnCancel() override {
    cancelled_ = true;
    stepper_.Poke();
  }
  void OnDone() override { delete this; }

 private:
  Stepper::Next Step() {
    if (cancelled_) return End(absl::CancelledError("the client went away or its time was over"));
    if (queue_.empty()) {
      // The job is asked once, for a watcher that knows all its events; after that its events
      // report.
      if (!asked_) {
        const absl::StatusOr<StoredJob> job = env_.jobs.GetJob(name_);
        if (!job.ok()) return End(job.status());
        asked_ = true;
        ended_ = handlers::HasEnded(job->job.state());
      }
      const bool ended = ended_;
      if (const absl::Status status = Fetch(); !status.ok()) return End(status);
      if (queue_.empty() && ended) return End(absl::OkStatus());
    }
    if (queue_.empty()) {
      if (!env_.draining) return Stepper::Next::kIdle;
      return End(
          WithReason(WithRetry(absl::UnavailableError("the server is stopping"), 5), "DRAINING"));
    }
    current_ = std::move(queue_.front());
    queue_.pop_front();
    StartWrite(&current_);
    return Stepper::Next::kBusy;
  }

  absl::Status Fetch() {
    MENDEL_ASSIGN_OR_RETURN(std::vector<v1::JobEvent> events,
                            env_.jobs.Events(name_, after_, kBatch));
    if (!events.empty()) after_ = events.back().sequence();
    const bool lags = events.size() == static_cast<size_t>(kBatch);
    for (size_t i = 0; i < events.size(); ++i) {
      if (events[i].has_state()) ended_ = handlers::HasEnded(events[i].state());
      const bool overtaken =
          i + 1 < events.size() && events[i].has_progress() && events[i + 1].has_progress();
      if (!lags || !overtaken) queue_.push_back(std::move(events[i]));
    }
    return absl::OkStatus();
  }

  Stepper::Next End(const absl::Status& status) {
    stepper_.Close();
    permit_.reset();
    span_.End(status);
    Finish(EndCall(env_, kWatch, status, span_.trace()));
    return Stepper::Next::kDone;
  }

  Environment& env_;
  std::unique_ptr<Permits::Permit> permit_;
  CallSpan span_;
  const std::string name_;
  int64_t after_;
  bool asked_ = false;
  bool ended_ = false;
  std::deque<v1::JobEvent> queue_;
  v1::JobEvent current_;
  std::atomic<bool> cancelled_ = false;
  Stepper stepper_;
};

class JobsService final : public v1::Jobs::CallbackService {
 public:
  static constexpr std::string_view kService = "mendel.v1.Jobs";
  explicit JobsService(Environment& env) : env_(env) {}
  MENDEL_UNARY(SubmitJob, v1::SubmitJobRequest, google::longrunning::Operation)
  MENDEL_UNARY(GetJob, v1::GetJobRequest, v1::Job)
  MENDEL_UNARY(ListJobs, v1::ListJobsRequest, v1::ListJobsResponse)
  MENDEL_UNARY(CancelJob, v1::CancelJobRequest, v1::Job)
  MENDEL_UNARY(DeleteJob, v1::DeleteJobRequest, google::protobuf::Empty)

  grpc::ServerWriteReactor<v1::JobEvent>* WatchJob(grpc::CallbackServerContext* context,
                                                   const v1::WatchJobRequest* request) override {
    v1::WatchJobRequest taken = *request;
    absl::StatusOr<AdmittedWait> admitted = AdmitWatch(*context, taken);
    if (!admitted.ok())
      return new Refusal<grpc::ServerWriteReactor<v1::JobEvent>>(
          EndCall(env_, kWatch, admitted.status()));
    return new Watcher(env_, *std::move(admitted), taken);
  }

 private:
  absl::StatusOr<AdmittedWait> AdmitWatch(const grpc::CallbackServerContext& context,
                                          v1::WatchJobRequest& request) {
    MENDEL_ASSIGN_OR_RETURN(Principal principal, Admit(env_, context, kWatch));
    MENDEL_ASSIGN_OR_RETURN(const std::string project, TakeProject(request));
    MENDEL_ASSIGN_OR_RETURN(const Caller caller, EnterProject(principal, kWatch, project));
    MENDEL_RETURN_IF_ERROR(CheckJobName("name", request.name()));
    if (request.after_sequence() < 0) return FieldError("after_sequence", "is negative");
    MENDEL_ASSIGN_OR_RETURN(auto permit, env_.watchers.Take(caller.name));
    return AdmittedWait{std::move(permit), CallSpan(env_, kWatch, principal)};
  }

  Environment& env_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeJobsService(Environment& env) {
  return std::make_unique<JobsService>(env);
}

}  // namespace mendel::server
