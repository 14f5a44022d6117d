// Changes from the page: a job is cancelled, or its work is submitted once more.
#ifndef MENDEL_SERVER_WEB_ACTIONS_H_
#define MENDEL_SERVER_WEB_ACTIONS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/http_message.h"
#include "server/rpc/environment.h"
#include "server/rpc/roles.h"

namespace mendel::server {

/// PermissionDenied (reason ORIGIN) unless the page's own script sent the request. A browser sends
/// the header X-Mendel-Page for another site only after a preflight, which this server refuses;
/// Origin and Sec-Fetch-Site, where a browser sends them, must name this server.
absl::Status CheckOwnPage(const HttpRequest& request);

/// {"job": the job's name} afterwards. The roles of CancelJob and of SubmitJob were checked.
absl::StatusOr<std::string> CancelFromPage(Environment& env, const Caller& caller,
                                           const std::string& job);
/// {"job": the new job's name}: the same work under the caller's name. A search that delivered a
/// plan is repeated with the next seed, since the stored plan answers the same seed.
absl::StatusOr<std::string> RunAgain(Environment& env, const Caller& caller,
                                     const std::string& job);

}  // namespace mendel::server

#endif  // MENDEL_SERVER_WEB_ACTIONS_H_
