#include <algorithm>
#include <memory>
#include <utility>

#include "base/status.h"
#include "google/longrunning/operations.grpc.pb.h"
#include "server/rpc/admit.h"
#include "server/rpc/errors.h"
#include "server/rpc/request_project.h"
#include "server/rpc/services.h"
#include "server/rpc/unary.h"

namespace mendel::server {
namespace {

constexpr std::string_view kWait = "/google.longrunning.Operations/WaitOperation";
constexpr int64_t kMaxWaitSeconds = 24 * 3600;

/// Answers once the operation is done, the time is over or the server stops: with the operation as
/// it is then.
class Waiter final : public grpc::ServerUnaryReactor {
 public:
  Waiter(Environment& env, AdmittedWait admitted, google::longrunning::WaitOperationRequest request,
         google::longrunning::Operation& response)
      : env_(env),
        permit_(std::move(admitted.permit)),
        span_(std::move(admitted.span)),
        request_(std::move(request)),
        response_(response),
        stepper_(env.hub, env.pool, [this] { return Step(); }) {
    if (request_.has_timeout()) {
      const int64_t seconds = std::clamp<int64_t>(request_.timeout().seconds(), 0, kMaxWaitSeconds);
      until_micros_ = env.clock.SteadyMicros() + seconds * 1'000'000 +
                      std::max(0, request_.timeout().nanos()) / 1000;
    }
    stepper_.Start(until_micros_);
  }
  void OnCancel() override {
    cancelled_ = true;
    stepper_.Poke();
  }
  void OnDone() override { delete this; }

 private:
  Stepper::Next Step() {
    absl::StatusOr<google::longrunning::Operation> operation =
        absl::CancelledError("the client went away or its time was over");
    if (!cancelled_) operation = handlers::FindOperation(env_, request_.name());
    const bool over = until_micros_ != 0 && env_.clock.SteadyMicros() >= until_micros_;
    if (operation.ok() && !operation->done() && !over && !env_.draining)
      return Stepper::Next::kIdle;
    stepper_.Close();
    const absl::Status status = operation.status();
    if (status.ok()) response_ = *std::move(operation);
    permit_.reset();
    span_.End(status);
    Finish(EndCall(env_, kWait, status, span_.trace()));
    return Stepper::Next::kDone;
  }

  Environment& env_;
  std::unique_ptr<Permits::Permit> permit_;
  CallSpan span_;
  const google::longrunning::WaitOperationRequest request_;
  google::longrunning::Operation& response_;
  int64_t until_micros_ = 0;
  std::atomic<bool> cancelled_ = false;
  Stepper stepper_;
};

class OperationsService final : public google::longrunning::Operations::CallbackService {
 public:
  static constexpr std::string_view kService = "google.longrunning.Operations";
  explicit OperationsService(Environment& env) : env_(env) {}
  MENDEL_UNARY(GetOperation, google::longrunning::GetOperationRequest,
               google::longrunning::Operation)
  MENDEL_UNARY(ListOperations, google::longrunning::ListOperationsRequest,
               google::longrunning::ListOperationsResponse)
  MENDEL_UNARY(CancelOperation, google::longrunning::CancelOperationRequest,
               google::protobuf::Empty)
  MENDEL_UNARY(DeleteOperation, google::longrunning::DeleteOperationRequest,
               google::protobuf::Empty)

  grpc::ServerUnaryReactor* WaitOperation(grpc::CallbackServerContext* context,
                                          const google::longrunning::WaitOperationRequest* request,
                                          google::longrunning::Operation* response) override {
    google::longrunning::WaitOperationRequest taken = *request;
    absl::StatusOr<AdmittedWait> admitted = AdmitWait(*context, taken);
    if (!admitted.ok())
      return new Refusal<grpc::ServerUnaryReactor>(EndCall(env_, kWait, admitted.status()));
    return new Waiter(env_, *std::move(admitted), std::move(taken), *response);
  }

 private:
  absl::StatusOr<AdmittedWait> AdmitWait(const grpc::CallbackServerContext& context,
                                         google::longrunning::WaitOperationRequest& request) {
    MENDEL_ASSIGN_OR_RETURN(Principal principal, Admit(env_, context, kWait));
    MENDEL_ASSIGN_OR_RETURN(const std::string project, TakeProject(request));
    MENDEL_ASSIGN_OR_RETURN(const Caller caller, EnterProject(principal, kWait, project));
    MENDEL_ASSIGN_OR_RETURN(auto permit, env_.watchers.Take(caller.name));
    return AdmittedWait{std::move(permit), CallSpan(env_, kWait, principal)};
  }

  Environment& env_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeOperationsService(Environment& env) {
  return std::make_unique<OperationsService>(env);
}

}  // namespace mendel::server
