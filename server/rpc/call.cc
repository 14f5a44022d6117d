#include "server/rpc/call.h"

#include <grpcpp/security/auth_context.h>

#include <atomic>
#include <memory>
#include <string>
#include <utility>

#include "base/status.h"
#include "server/client_address.h"
#include "server/rpc/admit.h"
#include "server/rpc/errors.h"
#include "server/rpc/request_project.h"
#include "server/trace_parent.h"

namespace mendel::server {
namespace {

constexpr std::string_view kCommonName = "x509_common_name";
constexpr std::string_view kAlternativeName = "x509_subject_alternative_name";

Credentials CredentialsOf(const grpc::ServerContextBase& context) {
  Credentials result;
  const auto header = context.client_metadata().find("authorization");
  if (header != context.client_metadata().end())
    result.authorization.assign(header->second.data(), header->second.size());
  const auto trace = context.client_metadata().find("traceparent");
  if (trace != context.client_metadata().end())
    result.trace_parent.assign(trace->second.data(), trace->second.size());
  result.address = ClientOfPeer(context.peer());
  const auto auth = context.auth_context();
  if (auth == nullptr || !auth->IsPeerAuthenticated()) return result;
  for (std::string_view property : {kAlternativeName, kCommonName}) {
    for (const grpc::string_ref& name : auth->FindPropertyValues(std::string(property))) {
      result.certificate_names.emplace_back(name.data(), name.size());
    }
  }
  return result;
}

std::string NewReference() {
  static std::atomic<uint64_t> last = 0;
  return Cat("r", ++last);
}

absl::Status InProject(const Principal& principal, std::string_view method,
                       const google::protobuf::Message& request, const UnaryHandler& handler) {
  const std::unique_ptr<google::protobuf::Message> taken(request.New());
  taken->CopyFrom(request);
  MENDEL_ASSIGN_OR_RETURN(const std::string project, TakeProject(*taken));
  MENDEL_ASSIGN_OR_RETURN(const Caller caller, EnterProject(principal, method, project));
  return handler(caller, *taken);
}

absl::Status CheckMessageSize(const ServerOptions& options,
                              const google::protobuf::Message& request) {
  const auto size = static_cast<int64_t>(request.ByteSizeLong());
  if (size <= options.max_message_bytes) return absl::OkStatus();
  const absl::Status refused = absl::ResourceExhaustedError(
      Cat("the request has ", size, " bytes; the limit is ", options.max_message_bytes));
  return WithReason(refused, "MESSAGE_SIZE", {{"limit", Cat(options.max_message_bytes)}});
}

}  // namespace

absl::StatusOr<Principal> Admit(Environment& env, const grpc::ServerContextBase& context,
                                std::string_view method) {
  return Admit(env, CredentialsOf(context), method);
}

CallSpan::CallSpan(Environment& env, std::string_view method, Principal& principal)
    : env_(&env),
      span_{std::string(method.substr(1)), env.tracer.Begin(principal.trace_parent),
            principal.trace_parent, true, env.clock.WallMicros()} {
  principal.trace_parent = span_.context;
}

void CallSpan::End(const absl::Status& status) {
  span_.end_micros = env_->clock.WallMicros();
  span_.attributes = {{"rpc.system", std::string("grpc")},
                      {"rpc.grpc.status_code", static_cast<int64_t>(status.code())}};
  if (!status.ok()) span_.error = absl::StatusCodeToString(status.code());
  env_->tracer.Record(span_);
}

std::string CallSpan::trace() const { return TraceIdOf(span_.context); }

grpc::Status EndCall(Environment& env, std::string_view method, const absl::Status& status,
                     const std::string& trace) {
  const std::string code = status.ok() ? "OK" : absl::StatusCodeToString(status.code());
  env.metrics.Add("mendel_rpcs_total", {{"method", std::string(method)}, {"code", code}});
  if (status.ok()) return grpc::Status::OK;
  const std::string reference = NewReference();
  const google::rpc::Status reported = ToRpcStatus(status, reference);
  const bool ours = absl::IsInternal(status) || absl::IsUnknown(status) ||
                    absl::IsDataLoss(status) || IsOfJobStore(status);
  env.log.Log(ours ? LogLevel::kError : LogLevel::kDebug, "call failed",
              {{"method", std::string(method)},
               {"code", code},
               {"error", std::string(status.message())},
               {"trace", trace},
               {"reference", reference}});
  return {static_cast<grpc::StatusCode>(reported.code()), reported.message(),
          reported.SerializeAsString()};
}

grpc::ServerUnaryReactor* RunUnary(Environment& env, grpc::CallbackServerContext* context,
                                   std::string_view method,
                                   const google::protobuf::Message& request, UnaryHandler handler) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  absl::StatusOr<Principal> principal = Admit(env, *context, method);
  if (principal.ok()) {
    const absl::Status fits = CheckMessageSize(env.options, request);
    if (!fits.ok()) principal = fits;
  }
  if (!principal.ok()) {
    reactor->Finish(EndCall(env, method, principal.status()));
    return reactor;
  }
  const int64_t begin = env.clock.SteadyMicros();
  CallSpan span(env, method, *principal);
  const bool posted =
      env.pool.TryPost([=, &env, &request, principal = *std::move(principal),
                        span = std::move(span), handler = std::move(handler)]() mutable {
        const absl::Status status =
            context->IsCancelled()
                ? absl::CancelledError("the client went away or its time was over")
                : InProject(principal, method, request, handler);
        const double seconds = static_cast<double>(env.clock.SteadyMicros() - begin) * 1e-6;
        for (const char* name : {"mendel_rpc_duration_seconds", "mendel_rpc_seconds"})
          env.metrics.Observe(name, {{"method", std::string(method)}}, seconds);
        span.End(status);
        reactor->Finish(EndCall(env, method, status, span.trace()));
      });
  if (!posted) {
    const absl::Status full =
        WithRetry(absl::ResourceExhaustedError("too many calls wait for a thread"), 1);
    reactor->Finish(EndCall(env, method, WithReason(full, "TOO_MANY_CALLS")));
  }
  return reactor;
}

}  // namespace mendel::server
