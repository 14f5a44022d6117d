// google.longrunning.Operations: another view of jobs.
#include <string>
#include <utility>

#include "base/status.h"
#include "server/rpc/errors.h"
#include "server/rpc/handlers.h"
#include "server/rpc/names.h"
#include "server/store/project_name.h"

namespace mendel::server::handlers {
namespace {

bool NamesPlan(const std::string& name) { return SplitName(name).rest.starts_with("plans/"); }

/// Sets the response of a successful job.
absl::Status SetResponse(Environment& env, const v1::Job& job, Operation& operation) {
  if (job.has_verdict()) {
    operation.mutable_response()->PackFrom(job.verdict());
    return absl::OkStatus();
  }
  const absl::StatusOr<v1::Plan> plan = env.jobs.GetPlan(job.plan());
  if (absl::IsNotFound(plan.status())) {
    *operation.mutable_error() = ToRpcStatus(absl::NotFoundError("the plan has been deleted"), "");
    return absl::OkStatus();
  }
  MENDEL_RETURN_IF_ERROR(plan.status());
  operation.mutable_response()->PackFrom(*plan);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Operation> OperationOf(Environment& env, const StoredJob& stored) {
  const v1::Job job = PublicJob(stored);
  Operation operation;
  operation.set_name(job.name());
  operation.mutable_metadata()->PackFrom(job);
  operation.set_done(HasEnded(job.state()));
  if (job.state() == v1::JOB_STATE_FAILED) *operation.mutable_error() = job.error();
  if (job.state() == v1::JOB_STATE_CANCELLED) {
    *operation.mutable_error() = ToRpcStatus(absl::CancelledError("the job was cancelled"), "");
  }
  if (job.state() == v1::JOB_STATE_SUCCEEDED)
    MENDEL_RETURN_IF_ERROR(SetResponse(env, job, operation));
  return operation;
}

absl::StatusOr<Operation> FindOperation(Environment& env, const std::string& name) {
  if (!NamesPlan(name)) {
    MENDEL_RETURN_IF_ERROR(CheckJobName("name", name));
    MENDEL_ASSIGN_OR_RETURN(const StoredJob job, env.jobs.GetJob(name));
    return OperationOf(env, job);
  }
  MENDEL_RETURN_IF_ERROR(CheckPlanName("name", name));
  MENDEL_ASSIGN_OR_RETURN(const v1::Plan plan, env.jobs.GetPlan(name));
  Operation operation;
  operation.set_name(name);
  operation.set_done(true);
  operation.mutable_response()->PackFrom(plan);
  return operation;
}

absl::Status GetOperation(Environment& env, const Caller&,
                          const google::longrunning::GetOperationRequest& request,
                          Operation& response) {
  MENDEL_ASSIGN_OR_RETURN(response, FindOperation(env, request.name()));
  return absl::OkStatus();
}

absl::Status ListOperations(Environment& env, const Caller& caller,
                            const google::longrunning::ListOperationsRequest& request,
                            google::longrunning::ListOperationsResponse& response) {
  if (!request.name().empty() && SplitName(request.name()).rest != "jobs")
    return FieldError("name", "is not 'jobs' or 'projects/{project}/jobs'");
  MENDEL_ASSIGN_OR_RETURN(const int page_size, PageSize(env.options, request.page_size()));
  JobFilter filter;
  filter.project = caller.project;
  if (caller.role == Role::kSubmitter) filter.client = caller.name;
  MENDEL_ASSIGN_OR_RETURN(
      const Page<StoredJob> page,
      FilteredJobs(env, filter, request.filter(), page_size, request.page_token()));
  for (const StoredJob& job : page.items) {
    MENDEL_ASSIGN_OR_RETURN(*response.add_operations(), OperationOf(env, job));
  }
  response.set_next_page_token(page.next_token);
  return absl::OkStatus();
}

absl::Status CancelOperation(Environment& env, const Caller& caller,
                             const google::longrunning::CancelOperationRequest& request, Empty&) {
  if (NamesPlan(request.name())) return FindOperation(env, request.name()).status();
  v1::CancelJobRequest cancel;
  cancel.set_name(request.name());
  v1::Job job;
  return CancelJob(env, caller, cancel, job);
}

absl::Status DeleteOperation(Environment& env, const Caller& caller,
                             const google::longrunning::DeleteOperationRequest& request,
                             Empty& response) {
  v1::DeleteJobRequest remove;
  remove.set_name(request.name());
  return DeleteJob(env, caller, remove, response);
}

}  // namespace mendel::server::handlers
