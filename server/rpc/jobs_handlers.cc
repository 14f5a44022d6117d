// Handlers that submit, list, cancel and delete jobs.
#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "base/status.h"
#include "server/rpc/errors.h"
#include "server/rpc/filter_records.h"
#include "server/rpc/handlers.h"
#include "server/rpc/names.h"
#include "server/store/spec_names.h"
#include "server/trace_parent.h"

namespace mendel::server::handlers {
namespace {

constexpr int kDefaultPage = 50;
constexpr int kMaxPriority = 10;

/// A model that a spec names.
absl::Status CheckModelExists(Environment& env, const std::string& field, const std::string& name) {
  MENDEL_RETURN_IF_ERROR(CheckModelName(field, name));
  return Annotate(env.jobs.GetModel(name).status(), field);
}

/// A plan that a spec names.
absl::StatusOr<v1::Plan> FindPlan(Environment& env, const std::string& field,
                                  const std::string& name) {
  MENDEL_RETURN_IF_ERROR(CheckPlanName(field, name));
  absl::StatusOr<v1::Plan> plan = env.jobs.GetPlan(name);
  if (!plan.ok()) return Annotate(plan.status(), field);
  return plan;
}

/// The plan's certificate must cover every value of the weights, and a worker must have its device.
absl::Status CheckRebind(Environment& env, const v1::RefitPlanSpec& spec) {
  MENDEL_ASSIGN_OR_RETURN(const v1::Plan plan, FindPlan(env, "spec.refit_plan.plan", spec.plan()));
  if (plan.weights() != "symbolic") {
    return PreconditionError(
        "the plan's certificate holds for the stored weights only (weights: exact)",
        "WEIGHTS_EXACT", {spec.plan()});
  }
  MENDEL_RETURN_IF_ERROR(FieldErrorOf(CheckRebindDevice(RebindDeviceOf(plan), env.options.runner)));
  return CheckModelExists(env, "spec.refit_plan.model", spec.model());
}

absl::Status CheckWork(Environment& env, const v1::JobSpec& spec) {
  switch (spec.work_case()) {
    case v1::JobSpec::kOptimize:
      return CheckModelExists(env, "spec.optimize.model", spec.optimize().model());
    case v1::JobSpec::kVerifyPlan:
      MENDEL_RETURN_IF_ERROR(
          FindPlan(env, "spec.verify_plan.plan", spec.verify_plan().plan()).status());
      return CheckModelExists(env, "spec.verify_plan.model", spec.verify_plan().model());
    case v1::JobSpec::kComparePair:
      MENDEL_RETURN_IF_ERROR(
          CheckModelExists(env, "spec.compare_pair.model_a", spec.compare_pair().model_a()));
      return CheckModelExists(env, "spec.compare_pair.model_b", spec.compare_pair().model_b());
    case v1::JobSpec::kRefitPlan:
      return CheckRebind(env, spec.refit_plan());
    case v1::JobSpec::WORK_NOT_SET:
      break;
  }
  return FieldError("spec.work", "names nothing to do");
}

absl::Status FillIn(absl::StatusOr<Operation> found, Operation& operation) {
  MENDEL_ASSIGN_OR_RETURN(operation, std::move(found));
  return absl::OkStatus();
}

/// The operation of a search that a stored plan answers.
absl::StatusOr<std::optional<Operation>> Reuse(Environment& env, const v1::JobSpec& spec) {
  if (!spec.has_optimize() || !env.work_key) return std::optional<Operation>();
  const std::string key = env.work_key(spec);
  if (key.empty()) return std::optional<Operation>();
  MENDEL_ASSIGN_OR_RETURN(const std::optional<v1::Plan> plan, env.jobs.FindPlan(key));
  if (!plan) return std::optional<Operation>();
  const absl::StatusOr<BlobId> blob = ParseBlobName(plan->blob());
  if (!blob.ok() || !env.blobs.Contains(*blob)) return std::optional<Operation>();
  env.metrics.Add("mendel_plan_reuse_total", {});
  const absl::StatusOr<StoredJob> job = env.jobs.GetJob(plan->job());
  const bool same =
      job.ok() && job->job.state() == v1::JOB_STATE_SUCCEEDED && job->job.plan() == plan->name();
  MENDEL_ASSIGN_OR_RETURN(Operation operation,
                          same ? OperationOf(env, *job) : FindOperation(env, plan->name()));
  return std::optional<Operation>(std::move(operation));
}

}  // namespace

absl::StatusOr<int> PageSize(const ServerOptions& options, int asked) {
  if (asked < 0) return FieldError("page_size", "is negative");
  return static_cast<int>(
      std::min<int64_t>(asked == 0 ? kDefaultPage : asked, options.max_page_size));
}

bool HasEnded(v1::JobState state) {
  return state == v1::JOB_STATE_SUCCEEDED || state == v1::JOB_STATE_FAILED ||
         state == v1::JOB_STATE_CANCELLED;
}

v1::Job PublicJob(const StoredJob& job) {
  v1::Job result = job.job;
  if (result.has_error())
    result.mutable_error()->set_message(WithoutPaths(result.error().message()));
  return result;
}

absl::Status CheckOwner(const StoredJob& job, const Caller& caller) {
  if (caller.role == Role::kAdmin || job.job.client() == caller.name) return absl::OkStatus();
  return WithReason(absl::PermissionDeniedError("the job is another client's"), "NOT_OWNER");
}

absl::Status Submit(Environment& env, const Caller& caller, const v1::SubmitJobRequest& request,
                    Operation& operation) {
  if (env.draining)
    return WithReason(WithRetry(absl::UnavailableError("the server is stopping"), 5), "DRAINING");
  MENDEL_RETURN_IF_ERROR(
      CheckRequestId("request_id", request.request_id(), env.options.max_request_id_bytes));
  // std::abs overflows for the smallest integer, so both ends are compared.
  if (request.priority() < -kMaxPriority || request.priority() > kMaxPriority)
    return FieldError("priority", "is not within -10 and 10");
  MENDEL_RETURN_IF_ERROR(CheckWork(env, request.spec()));
  MENDEL_RETURN_IF_ERROR(FieldErrorOf(CheckSpec(request.spec(), env.options.runner)));
  MENDEL_ASSIGN_OR_RETURN(const auto known,
                          env.jobs.FindRequest(caller.name, request.request_id(), request.spec()));
  if (known.has_value()) {
    const absl::Status found = FillIn(FindOperation(env, *known), operation);
    // The id's earlier result may have been deleted; the id then counts as new.
    if (!absl::IsNotFound(found)) return found;
  }
  MENDEL_ASSIGN_OR_RETURN(std::optional<Operation> stored, Reuse(env, request.spec()));
  if (stored) {
    MENDEL_ASSIGN_OR_RETURN(const std::string name,
                            env.jobs.RememberRequest(caller.name, request.request_id(),
                                                     request.spec(), stored->name()));
    if (name != stored->name()) return FillIn(FindOperation(env, name), operation);
    operation = std::move(*stored);
    env.log.Log(LogLevel::kInfo, "search answered by a stored plan",
                {{"job", operation.name()}, {"client", caller.name}});
    return absl::OkStatus();
  }
  const SubmitOptions options{env.options.max_pending_jobs, env.options.max_pending_jobs_per_client,
                              env.work_key ? env.work_key(request.spec()) : "",
                              caller.trace_parent};
  const absl::StatusOr<StoredJob> job = env.jobs.Submit(
      request.spec(), caller.name, request.request_id(), request.priority(), options);
  if (absl::IsResourceExhausted(job.status()))
    return WithReason(WithRetry(job.status(), 5),
                      job.status().GetPayload(kQueueFull) ? "QUEUE_FULL" : "STORE_FULL");
  MENDEL_RETURN_IF_ERROR(job.status());
  env.log.Log(LogLevel::kInfo, "job submitted",
              {{"job", job->job.name()},
               {"client", caller.name},
               {"trace", TraceIdOf(caller.trace_parent)}});
  MENDEL_ASSIGN_OR_RETURN(operation, OperationOf(env, *job));
  return absl::OkStatus();
}

absl::Status SubmitJob(Environment& env, const Caller& caller, const v1::SubmitJobRequest& request,
                       Operation& operation) {
  return Submit(env, caller, request, operation);
}

absl::Status GetJob(Environment& env, const Caller&, const v1::GetJobRequest& request,
                    v1::Job& response) {
  MENDEL_RETURN_IF_ERROR(CheckJobName("name", request.name()));
  MENDEL_ASSIGN_OR_RETURN(const StoredJob job, env.jobs.GetJob(request.name()));
  response = PublicJob(job);
  return absl::OkStatus();
}

absl::Status ListJobs(Environment& env, const Caller& caller, const v1::ListJobsRequest& request,
                      v1::ListJobsResponse& response) {
  MENDEL_ASSIGN_OR_RETURN(const int page_size, PageSize(env.options, request.page_size()));
  JobFilter filter;
  for (int state : request.states()) {
    if (state == v1::JOB_STATE_UNSPECIFIED || !v1::JobState_IsValid(state))
      return FieldError("states", "contains a state that is none");
    filter.states.push_back(static_cast<v1::JobState>(state));
  }
  filter.project = caller.project;
  filter.client = request.client();
  if (filter.client.empty() && caller.role == Role::kSubmitter) filter.client = caller.name;
  MENDEL_ASSIGN_OR_RETURN(
      const Page<StoredJob> page,
      FilteredJobs(env, filter, request.filter(), page_size, request.page_token()));
  for (const StoredJob& job : page.items) *response.add_jobs() = PublicJob(job);
  response.set_next_page_token(page.next_token);
  return absl::OkStatus();
}

absl::StatusOr<Page<StoredJob>> FilteredJobs(Environment& env, const JobFilter& among,
                                             const std::string& filter, int page_size,
                                             const std::string& token) {
  MENDEL_ASSIGN_OR_RETURN(const ListFilter parsed, ListFilter::Parse(filter, JobFields()));
  FilterRecords records(env);
  return FilteredPage<StoredJob>(
      parsed, page_size, token,
      [&](int size, const std::string& from) { return env.jobs.ListJobs(among, size, from); },
      [&](const StoredJob& job) { return records.Of(job); });
}

absl::Status CancelJob(Environment& env, const Caller& caller, const v1::CancelJobRequest& request,
                       v1::Job& response) {
  MENDEL_RETURN_IF_ERROR(CheckJobName("name", request.name()));
  MENDEL_ASSIGN_OR_RETURN(const StoredJob before, env.jobs.GetJob(request.name()));
  MENDEL_RETURN_IF_ERROR(CheckOwner(before, caller));
  MENDEL_ASSIGN_OR_RETURN(const StoredJob job, env.jobs.CancelJob(request.name()));
  env.log.Log(LogLevel::kInfo, "job cancelled", {{"job", request.name()}, {"client", caller.name}});
  response = PublicJob(job);
  return absl::OkStatus();
}

absl::Status DeleteJob(Environment& env, const Caller& caller, const v1::DeleteJobRequest& request,
                       Empty&) {
  MENDEL_RETURN_IF_ERROR(CheckJobName("name", request.name()));
  MENDEL_ASSIGN_OR_RETURN(const StoredJob job, env.jobs.GetJob(request.name()));
  MENDEL_RETURN_IF_ERROR(CheckOwner(job, caller));
  MENDEL_RETURN_IF_ERROR(env.jobs.DeleteJob(request.name()));
  env.log.Log(LogLevel::kInfo, "job deleted", {{"job", request.name()}, {"client", caller.name}});
  return absl::OkStatus();
}

}  // namespace mendel::server::handlers
