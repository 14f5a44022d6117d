// One job with its events, and results as JSON: messages of the API (message_json.h), and what a
// plan file says about its mutants and its certificate.
#ifndef MENDEL_SERVER_WEB_JOB_JSON_H_
#define MENDEL_SERVER_WEB_JOB_JSON_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "mendel/v1/jobs.pb.h"
#include "server/rpc/environment.h"
#include "server/rpc/roles.h"

namespace mendel::server {

/// Most events in one answer.
inline constexpr int kEventsAtOnce = 200;

/// {"job": v1::Job without its verdict, "files": {model: main file}, "events": [v1::JobEvent after
/// `after`, kEventsAtOnce at most]}
absl::StatusOr<std::string> JobJson(Environment& env, const Caller& caller, const std::string& name,
                                    int64_t after);

/// {"plan": v1::Plan or null, "verdict": v1::Verdict or null, "report": whether the verifier's
/// report can be read, "details": of server/web/plan_json.h, or null}
absl::StatusOr<std::string> ResultJson(Environment& env, const Caller& caller,
                                       const std::string& name);

/// {"plan": v1::Plan, "files": {model: main file}, "details": of server/web/plan_json.h, or null}
absl::StatusOr<std::string> PlanJson(Environment& env, const Caller& caller,
                                     const std::string& name);

}  // namespace mendel::server

#endif  // MENDEL_SERVER_WEB_JOB_JSON_H_
