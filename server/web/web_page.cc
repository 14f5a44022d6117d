#include "server/web/web_page.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "base/status.h"
#include "server/rpc/admit.h"
#include "server/rpc/errors.h"
#include "server/store/project_name.h"
#include "server/web/actions.h"
#include "server/web/downloads.h"
#include "server/web/job_json.h"
#include "server/web/list_json.h"
#include "server/web/page_files.h"

namespace mendel::server {
namespace {

constexpr std::string_view kCancelJob = "/mendel.v1.Jobs/CancelJob";
constexpr std::string_view kSubmitJob = "/mendel.v1.Jobs/SubmitJob";
constexpr std::string_view kListModels = "/mendel.v1.Models/ListModels";
constexpr std::string_view kListPlans = "/mendel.v1.Plans/ListPlans";
constexpr std::string_view kGetPlan = "/mendel.v1.Plans/GetPlan";
constexpr std::string_view kGetJob = "/mendel.v1.Jobs/GetJob";
constexpr std::string_view kListJobs = "/mendel.v1.Jobs/ListJobs";
constexpr std::string_view kWatchJob = "/mendel.v1.Jobs/WatchJob";
constexpr std::string_view kRead = "/google.bytestream.ByteStream/Read";

int HttpCode(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kOutOfRange:
      return 400;
    case absl::StatusCode::kUnauthenticated:
      return 401;
    case absl::StatusCode::kPermissionDenied:
      return 403;
    case absl::StatusCode::kNotFound:
      return 404;
    case absl::StatusCode::kFailedPrecondition:
      return 409;
    case absl::StatusCode::kResourceExhausted:
      return 429;
    case absl::StatusCode::kUnavailable:
      return 503;
    default:
      return 500;
  }
}

/// The host of a Host header, without its port.
std::string_view HostOf(std::string_view header) {
  const size_t colon = header.rfind(':');
  const bool port =
      colon != std::string_view::npos && header.find(']', colon) == std::string_view::npos;
  return port ? header.substr(0, colon) : header;
}

/// True for IP addresses and for names without dots, such as localhost. Any other host could be an
/// attacker's domain that resolves to this server (DNS rebinding).
bool IsSafeHost(std::string_view host) {
  const bool digits = std::all_of(host.begin(), host.end(),
                                  [](char c) { return c == '.' || (c >= '0' && c <= '9'); });
  return digits || host.starts_with('[') || host.find('.') == std::string_view::npos;
}

HttpResponse JsonResponse(std::string text) {
  return {200, "application/json; charset=utf-8", std::move(text), {{"Cache-Control", "no-store"}}};
}

std::vector<std::string> PartsOf(std::string_view path) {
  std::vector<std::string> parts;
  while (!path.empty()) {
    path.remove_prefix(1);
    const size_t slash = path.find('/');
    parts.emplace_back(path.substr(0, slash));
    path.remove_prefix(std::min(slash, path.size()));
  }
  return parts;
}

/// A number of a query; 0 when it is absent.
absl::StatusOr<int64_t> NumberOf(const HttpRequest& request, const std::string& name) {
  const std::string_view text = request.Parameter(name);
  int64_t value = 0;
  if (text.empty()) return value;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0)
    return FieldError(name, "is not a number");
  return value;
}

/// A List request with page and filter as the address states them.
template <class List>
absl::StatusOr<List> ListOf(const Environment& env, const HttpRequest& request) {
  MENDEL_ASSIGN_OR_RETURN(const int64_t size, NumberOf(request, "page_size"));
  List list;
  list.set_page_size(static_cast<int32_t>(std::min<int64_t>(size, env.options.max_page_size)));
  list.set_page_token(std::string(request.Parameter("page_token")));
  // The message is sent to nobody, but its texts must be UTF-8 all the same.
  list.set_filter(std::string(request.Parameter("filter")));
  return list;
}

absl::StatusOr<std::string> JobList(Environment& env, const Caller& caller,
                                    const HttpRequest& request) {
  MENDEL_ASSIGN_OR_RETURN(auto list, ListOf<v1::ListJobsRequest>(env, request));
  if (const std::string state(request.Parameter("state")); !state.empty()) {
    v1::JobState value = v1::JOB_STATE_UNSPECIFIED;
    if (!v1::JobState_Parse(state, &value)) return FieldError("state", "is no state");
    list.add_states(value);
  }
  return JobListJson(env, caller, list);
}

absl::Status NoSuchPage() { return absl::NotFoundError("there is no such page"); }

}  // namespace

HttpResponse WebPage::Answer(const HttpRequest& request) {
  if (const PageFile* file = FindPageFile(request.path); file != nullptr && !request.post) {
    return {200, std::string(file->type), std::string(file->text), {{"Cache-Control", "no-cache"}}};
  }
  absl::StatusOr<HttpResponse> response = Data(request);
  return response.ok() ? *std::move(response) : Refusal(response.status());
}

absl::StatusOr<Principal> WebPage::Enter(const HttpRequest& request, std::string_view method) {
  const std::string authorization(request.Header("authorization"));
  if (authorization.empty() && !IsSafeHost(HostOf(request.Header("host")))) {
    return WithReason(absl::PermissionDeniedError(
                          "without a token request the server's address or for localhost"),
                      "HOST");
  }
  return Admit(env_, {authorization, {}, request.client}, method);
}

absl::StatusOr<Caller> WebPage::Enter(const HttpRequest& request, std::string_view method,
                                      const std::string& project) {
  MENDEL_ASSIGN_OR_RETURN(const Principal principal, Enter(request, method));
  return EnterProject(principal, method, project);
}

absl::StatusOr<HttpResponse> WebPage::Data(const HttpRequest& request) {
  std::vector<std::string> parts = PartsOf(request.path);
  if (parts.empty() || parts.front() != "api") return NoSuchPage();
  parts.erase(parts.begin());
  if (request.post) MENDEL_RETURN_IF_ERROR(CheckOwnPage(request));
  if (parts == std::vector<std::string>{"session"} && !request.post) return Session(request);
  std::string project;
  if (parts.size() > 2 && parts[0] == "projects") {
    if (!IsProject(parts[1])) return FieldError("project", "is no project's name");
    project = ProjectOf(JoinName(parts[1], ""));
    parts.erase(parts.begin(), parts.begin() + 2);
  }
  if (parts.empty() || parts.size() > 3) return NoSuchPage();
  if (request.post) return Act(request, project, parts);
  if (parts[0] == "jobs") return Jobs(request, project, parts);
  if (parts[0] == "plans") return Plans(request, project, parts);
  return parts[0] == "models" && parts.size() == 1 ? Models(request, project) : NoSuchPage();
}

absl::StatusOr<HttpResponse> WebPage::Session(const HttpRequest& request) {
  MENDEL_ASSIGN_OR_RETURN(const Principal principal, Enter(request, kListJobs));
  nlohmann::json projects = nlohmann::json::array();
  const auto add = [&](const std::string& project) {
    const Role role = principal.grants.In(project);
    if (role >= Role::kReader)
      projects.push_back({{"name", ProjectTitle(project)}, {"role", RoleName(role)}});
  };
  if (principal.grants.everywhere >= Role::kReader) {
    for (const std::string& project : env_.authenticator.Projects()) add(project);
  } else {
    for (const auto& [project, role] : principal.grants.by_project) add(project);
  }
  const nlohmann::json session = {{"caller", principal.name},
                                  {"role", RoleName(principal.grants.Highest())},
                                  {"projects", projects},
                                  {"version", version_}};
  return JsonResponse(session.dump());
}

absl::StatusOr<HttpResponse> WebPage::Jobs(const HttpRequest& request, const std::string& project,
                                           const std::vector<std::string>& parts) {
  if (parts.size() == 1) {
    MENDEL_ASSIGN_OR_RETURN(const Caller caller, Enter(request, kListJobs, project));
    MENDEL_ASSIGN_OR_RETURN(std::string text, JobList(env_, caller, request));
    return JsonResponse(std::move(text));
  }
  const std::string name = JoinName(project, "jobs/" + parts[1]);
  const std::string what = parts.size() == 2 ? "" : parts[2];
  if (parts.size() == 2 || what == "result") {
    MENDEL_ASSIGN_OR_RETURN(const Caller caller,
                            Enter(request, what.empty() ? kWatchJob : kGetJob, project));
    MENDEL_ASSIGN_OR_RETURN(const int64_t after, NumberOf(request, "after"));
    MENDEL_ASSIGN_OR_RETURN(std::string text, what.empty() ? JobJson(env_, caller, name, after)
                                                           : ResultJson(env_, caller, name));
    return JsonResponse(std::move(text));
  }
  MENDEL_ASSIGN_OR_RETURN(
      const Caller caller,
      Enter(request, what == "plan" || what == "bundle" ? kRead : kWatchJob, project));
  return DownloadOf(env_, caller, name, what);
}

absl::StatusOr<HttpResponse> WebPage::Models(const HttpRequest& request,
                                             const std::string& project) {
  MENDEL_ASSIGN_OR_RETURN(const Caller caller, Enter(request, kListModels, project));
  MENDEL_ASSIGN_OR_RETURN(const auto list, ListOf<v1::ListModelsRequest>(env_, request));
  MENDEL_ASSIGN_OR_RETURN(std::string text, ModelListJson(env_, caller, list));
  return JsonResponse(std::move(text));
}

absl::StatusOr<HttpResponse> WebPage::Plans(const HttpRequest& request, const std::string& project,
                                            const std::vector<std::string>& parts) {
  if (parts.size() == 1) {
    MENDEL_ASSIGN_OR_RETURN(const Caller caller, Enter(request, kListPlans, project));
    MENDEL_ASSIGN_OR_RETURN(const auto list, ListOf<v1::ListPlansRequest>(env_, request));
    MENDEL_ASSIGN_OR_RETURN(std::string text, PlanListJson(env_, caller, list));
    return JsonResponse(std::move(text));
  }
  const std::string name = JoinName(project, "plans/" + parts[1]);
  const bool file = parts.size() == 3;
  MENDEL_ASSIGN_OR_RETURN(const Caller caller, Enter(request, file ? kRead : kGetPlan, project));
  if (file) return PlanDownload(env_, caller, files_, name, parts[2]);
  MENDEL_ASSIGN_OR_RETURN(std::string text, PlanJson(env_, caller, name));
  return JsonResponse(std::move(text));
}

absl::StatusOr<HttpResponse> WebPage::Act(const HttpRequest& request, const std::string& project,
                                          const std::vector<std::string>& parts) {
  const std::string what = parts.size() == 3 && parts[0] == "jobs" ? parts[2] : "";
  if (what != "cancel" && what != "again") return NoSuchPage();
  const std::string name = JoinName(project, "jobs/" + parts[1]);
  const bool cancel = what == "cancel";
  MENDEL_ASSIGN_OR_RETURN(const Caller caller,
                          Enter(request, cancel ? kCancelJob : kSubmitJob, project));
  MENDEL_ASSIGN_OR_RETURN(
      std::string text, cancel ? CancelFromPage(env_, caller, name) : RunAgain(env_, caller, name));
  return JsonResponse(std::move(text));
}

HttpResponse WebPage::Refusal(const absl::Status& status) {
  const std::string reference = Cat("w", ++refusals_);
  const google::rpc::Status reported = ToRpcStatus(status, reference);
  const int code = HttpCode(status.code());
  if (code == 500) {
    env_.log.Log(LogLevel::kError, "page failed",
                 {{"error", std::string(status.message())}, {"reference", reference}});
  }
  const nlohmann::json json = {
      {"error",
       {{"code", absl::StatusCodeToString(status.code())}, {"message", reported.message()}}}};
  HttpResponse response =
      JsonResponse(json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  response.code = code;
  if (code == 401) response.headers.emplace_back("WWW-Authenticate", "Bearer");
  return response;
}

}  // namespace mendel::server
