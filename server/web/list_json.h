// Lists of jobs, models and plans as JSON: an answer of the API with what a row shows besides.
#ifndef MENDEL_SERVER_WEB_LIST_JSON_H_
#define MENDEL_SERVER_WEB_LIST_JSON_H_

#include <string>

#include "absl/status/statusor.h"
#include "mendel/v1/jobs.pb.h"
#include "mendel/v1/models.pb.h"
#include "mendel/v1/plans.pb.h"
#include "server/rpc/environment.h"
#include "server/rpc/roles.h"

namespace mendel::server {

/// A v1::ListJobsResponse without verdicts, "files" (main file by model) and "speedups" (by plan).
absl::StatusOr<std::string> JobListJson(Environment& env, const Caller& caller,
                                        const v1::ListJobsRequest& request);
/// A v1::ListModelsResponse.
absl::StatusOr<std::string> ModelListJson(Environment& env, const Caller& caller,
                                          const v1::ListModelsRequest& request);
/// A v1::ListPlansResponse and "files".
absl::StatusOr<std::string> PlanListJson(Environment& env, const Caller& caller,
                                         const v1::ListPlansRequest& request);

}  // namespace mendel::server

#endif  // MENDEL_SERVER_WEB_LIST_JSON_H_
