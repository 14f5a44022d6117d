// Plans, and the shorthands that queue jobs on them.
#include <string>

#include "base/status.h"
#include "server/rpc/errors.h"
#include "server/rpc/filter_records.h"
#include "server/rpc/handlers.h"
#include "server/rpc/names.h"

namespace mendel::server::handlers {

absl::Status GetPlan(Environment& env, const Caller&, const v1::GetPlanRequest& request,
                     v1::Plan& response) {
  MENDEL_RETURN_IF_ERROR(CheckPlanName("name", request.name()));
  MENDEL_ASSIGN_OR_RETURN(response, env.jobs.GetPlan(request.name()));
  return absl::OkStatus();
}

absl::Status ListPlans(Environment& env, const Caller& caller, const v1::ListPlansRequest& request,
                       v1::ListPlansResponse& response) {
  MENDEL_ASSIGN_OR_RETURN(const int page_size, PageSize(env.options, request.page_size()));
  if (!request.model().empty()) MENDEL_RETURN_IF_ERROR(CheckModelName("model", request.model()));
  MENDEL_ASSIGN_OR_RETURN(const ListFilter filter,
                          ListFilter::Parse(request.filter(), PlanFields()));
  FilterRecords records(env);
  MENDEL_ASSIGN_OR_RETURN(const Page<v1::Plan> page,
                          FilteredPage<v1::Plan>(
                              filter, page_size, request.page_token(),
                              [&](int size, const std::string& token) {
                                return env.jobs.ListPlans(caller.project, request.model(), size,
                                                          token);
                              },
                              [&](const v1::Plan& plan) { return records.Of(plan); }));
  for (const v1::Plan& plan : page.items) *response.add_plans() = plan;
  response.set_next_page_token(page.next_token);
  return absl::OkStatus();
}

absl::Status DeletePlan(Environment& env, const Caller& caller,
                        const v1::DeletePlanRequest& request, Empty&) {
  MENDEL_RETURN_IF_ERROR(CheckPlanName("name", request.name()));
  MENDEL_RETURN_IF_ERROR(env.jobs.DeletePlan(request.name()));
  env.log.Log(LogLevel::kInfo, "plan deleted", {{"plan", request.name()}, {"client", caller.name}});
  return absl::OkStatus();
}

absl::Status RefitPlan(Environment& env, const Caller& caller, const v1::RefitPlanRequest& request,
                       Operation& operation) {
  v1::SubmitJobRequest submit;
  submit.set_request_id(request.request_id());
  submit.mutable_spec()->mutable_refit_plan()->set_plan(request.plan());
  submit.mutable_spec()->mutable_refit_plan()->set_model(request.model());
  return Submit(env, caller, submit, operation);
}

absl::Status VerifyPlan(Environment& env, const Caller& caller,
                        const v1::VerifyPlanRequest& request, Operation& operation) {
  v1::SubmitJobRequest submit;
  submit.set_request_id(request.request_id());
  submit.mutable_spec()->mutable_verify_plan()->set_plan(request.plan());
  submit.mutable_spec()->mutable_verify_plan()->set_model(request.model());
  return Submit(env, caller, submit, operation);
}

absl::Status ComparePair(Environment& env, const Caller& caller,
                         const v1::ComparePairRequest& request, Operation& operation) {
  v1::SubmitJobRequest submit;
  submit.set_request_id(request.request_id());
  v1::ComparePairSpec& spec = *submit.mutable_spec()->mutable_compare_pair();
  spec.set_model_a(request.model_a());
  spec.set_model_b(request.model_b());
  spec.set_shapes(request.shapes());
  spec.set_weights(request.weights());
  return Submit(env, caller, submit, operation);
}

}  // namespace mendel::server::handlers
