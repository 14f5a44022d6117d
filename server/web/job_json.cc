#include "server/web/job_json.h"

#include <nlohmann/json.hpp>
#include <vector>

#include "base/status.h"
#include "server/rpc/handlers.h"
#include "server/store/spec_names.h"
#include "server/web/message_json.h"
#include "server/web/plan_json.h"

namespace mendel::server {
namespace {

std::string FilesJson(Environment& env, const std::vector<std::string>& models) {
  nlohmann::json files = nlohmann::json::object();
  for (const std::string& model : models) AddFile(env, model, files);
  return JsonText(files);
}

}  // namespace

absl::StatusOr<std::string> JobJson(Environment& env, const Caller& caller, const std::string& name,
                                    int64_t after) {
  v1::GetJobRequest request;
  request.set_name(name);
  v1::Job job;
  MENDEL_RETURN_IF_ERROR(handlers::GetJob(env, caller, request, job));
  Shorten(job);
  MENDEL_ASSIGN_OR_RETURN(const std::string job_text, MessageJson(job));
  std::string text = Cat("{\"job\":", job_text, ",\"files\":", FilesJson(env, ModelsOf(job.spec())),
                         ",\"events\":[");
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

absl::StatusOr<std::string> PlanJson(Environment& env, const Caller& caller,
                                     const std::string& name) {
  v1::GetPlanRequest request;
  request.set_name(name);
  v1::Plan plan;
  MENDEL_RETURN_IF_ERROR(handlers::GetPlan(env, caller, request, plan));
  MENDEL_ASSIGN_OR_RETURN(const std::string text, MessageJson(plan));
  return Cat("{\"plan\":", text, ",\"files\":", FilesJson(env, {plan.model()}),
             ",\"details\":", PlanDetailsJson(env.blobs, plan), "}");
}

}  // namespace mendel::server
