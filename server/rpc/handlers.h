// Handlers of the unary RPCs: validate, fetch, do, convert. They are free of gRPC and run on the
// pool, for callers whose role was checked.
#ifndef MENDEL_SERVER_RPC_HANDLERS_H_
#define MENDEL_SERVER_RPC_HANDLERS_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "google/bytestream/bytestream.pb.h"
#include "google/longrunning/operations.pb.h"
#include "google/protobuf/empty.pb.h"
#include "mendel/v1/jobs.pb.h"
#include "mendel/v1/models.pb.h"
#include "mendel/v1/plans.pb.h"
#include "mendel/v1/verifier.pb.h"
#include "server/rpc/environment.h"
#include "server/rpc/roles.h"
#include "server/store/job_store.h"

namespace mendel::server::handlers {

using google::longrunning::Operation;
using google::protobuf::Empty;

absl::Status FindMissingBlobs(Environment&, const Caller&, const v1::FindMissingBlobsRequest&,
                              v1::FindMissingBlobsResponse&);
absl::Status CreateModel(Environment&, const Caller&, const v1::CreateModelRequest&, v1::Model&);
absl::Status GetModel(Environment&, const Caller&, const v1::GetModelRequest&, v1::Model&);
absl::Status ListModels(Environment&, const Caller&, const v1::ListModelsRequest&,
                        v1::ListModelsResponse&);
absl::Status DeleteModel(Environment&, const Caller&, const v1::DeleteModelRequest&, Empty&);

absl::Status SubmitJob(Environment&, const Caller&, const v1::SubmitJobRequest&, Operation&);
absl::Status GetJob(Environment&, const Caller&, const v1::GetJobRequest&, v1::Job&);
absl::Status ListJobs(Environment&, const Caller&, const v1::ListJobsRequest&,
                      v1::ListJobsResponse&);
absl::Status CancelJob(Environment&, const Caller&, const v1::CancelJobRequest&, v1::Job&);
absl::Status DeleteJob(Environment&, const Caller&, const v1::DeleteJobRequest&, Empty&);

absl::Status GetPlan(Environment&, const Caller&, const v1::GetPlanRequest&, v1::Plan&);
absl::Status ListPlans(Environment&, const Caller&, const v1::ListPlansRequest&,
                       v1::ListPlansResponse&);
absl::Status RefitPlan(Environment&, const Caller&, const v1::RefitPlanRequest&, Operation&);
absl::Status DeletePlan(Environment&, const Caller&, const v1::DeletePlanRequest&, Empty&);
absl::Status VerifyPlan(Environment&, const Caller&, const v1::VerifyPlanRequest&, Operation&);
absl::Status ComparePair(Environment&, const Caller&, const v1::ComparePairRequest&, Operation&);

absl::Status GetOperation(Environment&, const Caller&,
                          const google::longrunning::GetOperationRequest&, Operation&);
absl::Status ListOperations(Environment&, const Caller&,
                            const google::longrunning::ListOperationsRequest&,
                            google::longrunning::ListOperationsResponse&);
absl::Status CancelOperation(Environment&, const Caller&,
                             const google::longrunning::CancelOperationRequest&, Empty&);
absl::Status DeleteOperation(Environment&, const Caller&,
                             const google::longrunning::DeleteOperationRequest&, Empty&);

absl::Status QueryWriteStatus(Environment&, const Caller&,
                              const google::bytestream::QueryWriteStatusRequest&,
                              google::bytestream::QueryWriteStatusResponse&);

// Shared by handlers.

/// Entries of a page: the default for 0, at most the limit. The error is a violation of
/// "page_size".
absl::StatusOr<int> PageSize(const ServerOptions& options, int asked);
bool HasEnded(v1::JobState state);
/// A job as clients see it: without the server's paths.
v1::Job PublicJob(const StoredJob& job);
/// Submits a job if the caller may. A search that a stored plan answers ends at once.
absl::Status Submit(Environment& env, const Caller& caller, const v1::SubmitJobRequest& request,
                    Operation& operation);
/// The operation of a job; fetches its plan.
absl::StatusOr<Operation> OperationOf(Environment& env, const StoredJob& job);
/// The operation of a name: `jobs/{uuid}`, or `plans/{sha256}` where a stored plan answered a
/// search whose job is gone.
absl::StatusOr<Operation> FindOperation(Environment& env, const std::string& name);
/// A page of the jobs among these that match the filter (list_filter.h).
absl::StatusOr<Page<StoredJob>> FilteredJobs(Environment& env, const JobFilter& among,
                                             const std::string& filter, int page_size,
                                             const std::string& token);
/// PermissionDenied unless the job is the caller's or the caller is admin.
absl::Status CheckOwner(const StoredJob& job, const Caller& caller);

}  // namespace mendel::server::handlers

#endif  // MENDEL_SERVER_RPC_HANDLERS_H_
