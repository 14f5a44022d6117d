#include "server/web/job_json.h"

#include <google/protobuf/util/json_util.h>

#include <nlohmann/json.hpp>
#include <vector>

#include "base/status.h"
#include "server/rpc/handlers.h"
#include "server/store/spec_names.h"
#include "server/web/plan_json.h"

namespace mendel::server {
namespace {

absl::StatusOr<std::string> MessageJson(const google::protobuf::Message& message) {
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  std::string text;
  const auto status = google::protobuf::util::MessageToJsonString(message, &text, options);
  if (!status.ok())
    return InternalError("a message that is no JSON: ",
                         std::string(status.message().data(), status.message().size()));
  return text;
}

/// Verdicts can be long; who polls a job need not get it again and again.
void Shorten(v1::Job& job) {
  job.clear_verdict();
  if (job.has_error()) job.mutable_error()->clear_details();
}

/// Adds the main files of the spec's models. Models may have been deleted since.
void AddFiles(Environment& env, const v1::JobSpec& spec, nlohmann::json& files) {
  for (const std::string& name : ModelsOf(spec)) {
    if (files.contains(name)) continue;
    if (const auto model = env.jobs.GetModel(name); model.ok()) files[name] = model->main_file();
  }
}

std::string TextOf(const nlohmann::json& value) {
  return value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string FilesJson(Environment& env, const v1::JobSpec& spec) {
  nlohmann::json files = nlohmann::json::object();
  AddFiles(env, spec, files);
  return TextOf(files);
}

}  // namespace

absl::StatusOr<std::string> JobListJson(Environment& env, const Caller& caller,
                                        const v1::ListJobsRequest& request) {
  v1::ListJobsResponse response;
  MENDEL_RETURN_IF_ERROR(handlers::ListJobs(env, caller, request, response));
  nlohmann::json files = nlohmann::json::object();
  nlohmann::json speedups = nlohmann::json::object();
  for (v1::Job& job : *response.mutable_jobs()) {
    Shorten(job);
    AddFiles(env, job.spec(), files);
    if (job.plan().empty()) continue;
    if (const auto plan = env.jobs.GetPlan(job.plan()); plan.ok())
      speedups[plan->name()] = plan->speedup();
  }
  MENDEL_ASSIGN_OR_RETURN(const std::string list, MessageJson(response));
  return Cat("{\"files\":", TextOf(files), ",\"speedups\":", TextOf(speedups),
             list == "{}" ? "" : ",", std::string_view(list).substr(1));
}

absl::StatusOr<std::string> JobJson(Environment& env, const Caller& caller, const std::string& name,
                                    int64_t after) {
  v1::GetJobRequest request;
  request.set_name(name);
  v1::Job job;
  MENDEL_RETURN_IF_ERROR(handlers::GetJob(env, caller, request, job));
  Shorten(job);
  MENDEL_ASSIGN_OR_RETURN(const std::string job_text, MessageJson(job));
  std::string text =
      Cat("{\"job\":", job_text, ",\"files\":", FilesJson(env, job.spec()), ",\"events\":[");
  MENDEL_ASSIGN_OR_RETURN(const std::vector<v1::JobEvent> events,
                          env.jobs.Events(name, after, kEventsAtOnce));
  for (size_t i = 0; i < events.size(); ++i) {
    MENDEL_ASSIGN_OR_RETURN(const std::string event, MessageJson(events[i]));
    text += Cat(i == 0 ? "" : ",", event);
  }
  return text + "]}";
}

absl::StatusOr<std::string> ResultJson(Environment& env, const Caller& caller,
                                       const std::string& name) {
  v1::GetJobRequest request;
  request.set_name(name);
  v1::Job job;
  MENDEL_RETURN_IF_ERROR(handlers::GetJob(env, caller, request, job));
  std::string plan = "null";
  std::string details = "null";
  // A plan may have been deleted since.
  if (const auto stored = env.jobs.GetPlan(job.plan()); !job.plan().empty() && stored.ok()) {
    MENDEL_ASSIGN_OR_RETURN(plan, MessageJson(*stored));
    details = PlanDetailsJson(env.blobs, *stored);
  }
  std::string verdict = "null";
  const bool report = !job.verdict().json().empty();
  if (job.has_verdict()) {
    job.mutable_verdict()->clear_json();
    MENDEL_ASSIGN_OR_RETURN(verdict, MessageJson(job.verdict()));
  }
  return Cat("{\"plan\":", plan, ",\"verdict\":", verdict,
             ",\"report\":", report ? "true" : "false", ",\"details\":", details, "}");
}

}  // namespace mendel::server
