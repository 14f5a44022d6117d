#include "server/web/list_json.h"

#include <nlohmann/json.hpp>
#include <string_view>

#include "base/status.h"
#include "server/rpc/handlers.h"
#include "server/store/spec_names.h"
#include "server/web/message_json.h"

namespace mendel::server {
namespace {

/// The message's fields after those of `facts`, in one object.
absl::StatusOr<std::string> Joined(const nlohmann::json& facts,
                                   const google::protobuf::Message& message) {
  MENDEL_ASSIGN_OR_RETURN(const std::string list, MessageJson(message));
  std::string text = JsonText(facts);
  if (list == "{}") return text;
  text.back() = ',';
  return text + list.substr(1);
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
    for (const std::string& model : ModelsOf(job.spec())) AddFile(env, model, files);
    if (job.plan().empty()) continue;
    if (const auto plan = env.jobs.GetPlan(job.plan()); plan.ok())
      speedups[plan->name()] = plan->speedup();
  }
  return Joined({{"files", files}, {"speedups", speedups}}, response);
}

absl::StatusOr<std::string> ModelListJson(Environment& env, const Caller& caller,
                                          const v1::ListModelsRequest& request) {
  v1::ListModelsResponse response;
  MENDEL_RETURN_IF_ERROR(handlers::ListModels(env, caller, request, response));
  return MessageJson(response);
}

absl::StatusOr<std::string> PlanListJson(Environment& env, const Caller& caller,
                                         const v1::ListPlansRequest& request) {
  v1::ListPlansResponse response;
  MENDEL_RETURN_IF_ERROR(handlers::ListPlans(env, caller, request, response));
  nlohmann::json files = nlohmann::json::object();
  for (const v1::Plan& plan : response.plans()) AddFile(env, plan.model(), files);
  return Joined({{"files", files}}, response);
}

}  // namespace mendel::server
