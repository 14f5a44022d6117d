// Files that the page offers: plans and reproduction bundles, files made from a plan, a job's
// journal as text, the verifier's report.
#ifndef MENDEL_SERVER_WEB_DOWNLOADS_H_
#define MENDEL_SERVER_WEB_DOWNLOADS_H_

#include <string>

#include "absl/status/statusor.h"
#include "mendel/v1/jobs.pb.h"
#include "server/http_message.h"
#include "server/rpc/environment.h"
#include "server/rpc/roles.h"
#include "server/web/plan_files.h"

namespace mendel::server {

/// `what`: "plan", "bundle", "log" or "report" of the job, as an attachment. NotFound for anything
/// else, and for what the job lacks. Plans and bundles are streamed. A stream counts as a transfer
/// (`--max-transfers`) while it runs.
absl::StatusOr<HttpResponse> DownloadOf(Environment& env, const Caller& caller,
                                        const std::string& job, const std::string& what);

/// `what`: "plan", "onnx" or "html" of the plan, as an attachment; code 202 while it is made.
absl::StatusOr<HttpResponse> PlanDownload(Environment& env, const Caller& caller, PlanFiles& files,
                                          const std::string& plan, const std::string& what);

/// One line of the journal, without its line break: time, number, what happened. Printable ASCII.
std::string EventLine(const v1::JobEvent& event);

}  // namespace mendel::server

#endif  // MENDEL_SERVER_WEB_DOWNLOADS_H_
