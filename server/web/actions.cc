#include "server/web/actions.h"

#include <nlohmann/json.hpp>

#include "base/status.h"
#include "server/rpc/errors.h"
#include "server/rpc/handlers.h"

namespace mendel::server {
namespace {

std::string NameJson(const std::string& job) { return nlohmann::json{{"job", job}}.dump(); }

}  // namespace

absl::Status CheckOwnPage(const HttpRequest& request) {
  const auto refused = [](const std::string& why) {
    return WithReason(absl::PermissionDeniedError(why), "ORIGIN");
  };
  if (request.Header("x-mendel-page") != "1")
    return refused("the header X-Mendel-Page is missing: only the page itself changes jobs");
  const std::string_view site = request.Header("sec-fetch-site");
  if (!site.empty() && site != "same-origin") return refused("another site sent the request");
  const std::string_view origin = request.Header("origin");
  const size_t scheme = origin.find("://");
  const bool same =
      scheme != std::string_view::npos && origin.substr(scheme + 3) == request.Header("host");
  if (!origin.empty() && !same) return refused("another site sent the request");
  return absl::OkStatus();
}

absl::StatusOr<std::string> CancelFromPage(Environment& env, const Caller& caller,
                                           const std::string& job) {
  v1::CancelJobRequest request;
  request.set_name(job);
  v1::Job cancelled;
  MENDEL_RETURN_IF_ERROR(handlers::CancelJob(env, caller, request, cancelled));
  return NameJson(cancelled.name());
}

absl::StatusOr<std::string> RunAgain(Environment& env, const Caller& caller,
                                     const std::string& job) {
  v1::GetJobRequest get;
  get.set_name(job);
  v1::Job found;
  MENDEL_RETURN_IF_ERROR(handlers::GetJob(env, caller, get, found));
  if (!handlers::HasEnded(found.state()))
    return absl::FailedPreconditionError("the job has not ended");
  v1::SubmitJobRequest submit;
  *submit.mutable_spec() = found.spec();
  submit.set_priority(found.priority());
  if (submit.spec().has_optimize() && !found.plan().empty()) {
    v1::OptimizeSpec& search = *submit.mutable_spec()->mutable_optimize();
    search.set_seed(search.seed() + 1);
  }
  handlers::Operation operation;
  MENDEL_RETURN_IF_ERROR(handlers::SubmitJob(env, caller, submit, operation));
  return NameJson(operation.name());
}

}  // namespace mendel::server
