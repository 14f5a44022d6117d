// One call: its caller, its admission, and the way of its status back. Only this, services.cc and
// the streams depend on gRPC.
#ifndef MENDEL_SERVER_RPC_CALL_H_
#define MENDEL_SERVER_RPC_CALL_H_

#include <google/protobuf/message.h>
#include <grpcpp/server_context.h>
#include <grpcpp/support/server_callback.h>
#include <grpcpp/support/status.h>

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/rpc/environment.h"
#include "server/rpc/roles.h"
#include "server/tracer.h"

namespace mendel::server {

/// Admission by server/rpc/admit.h, with the credentials of a call.
absl::StatusOr<Principal> Admit(Environment& env, const grpc::ServerContextBase& context,
                                std::string_view method);

/// The span of an admitted call (server/tracer.h): below the caller's trace, and above what the
/// caller submits.
class CallSpan {
 public:
  CallSpan(Environment& env, std::string_view method, Principal& principal);
  void End(const absl::Status& status);
  std::string trace() const;  ///< the trace's id; empty: none

 private:
  Environment* env_;
  Span span_;
};

/// A call that may wait for jobs.
struct AdmittedWait {
  std::unique_ptr<Permits::Permit> permit;
  CallSpan span;
};

/// The status with its details (grpc-status-details-bin). Counts the call, and logs the details
/// that clients do not receive.
/// `trace`: the id of the call's trace, for the log.
grpc::Status EndCall(Environment& env, std::string_view method, const absl::Status& status,
                     const std::string& trace = "");

/// A handler, for a caller of the request's project and the request with names as TakeProject
/// leaves them.
using UnaryHandler =
    std::function<absl::Status(const Caller&, const google::protobuf::Message& request)>;

/// Runs a handler on the pool and finishes the call. A call that is canceled or out of time before
/// its turn is not started.
grpc::ServerUnaryReactor* RunUnary(Environment& env, grpc::CallbackServerContext* context,
                                   std::string_view method,
                                   const google::protobuf::Message& request, UnaryHandler handler);

/// A reactor that ends a stream at once.
template <class Reactor>
class Refusal final : public Reactor {
 public:
  explicit Refusal(const grpc::Status& status) { this->Finish(status); }
  void OnDone() override { delete this; }
};

}  // namespace mendel::server

#endif  // MENDEL_SERVER_RPC_CALL_H_
