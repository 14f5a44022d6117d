// The web page: its files, and the JSON that its script requests. The handlers of the RPCs do all
// reads and changes, with the same roles. docs/service.md lists the addresses.
#ifndef MENDEL_SERVER_WEB_WEB_PAGE_H_
#define MENDEL_SERVER_WEB_WEB_PAGE_H_

#include <string>
#include <string_view>
#include <vector>

#include "server/http_message.h"
#include "server/rpc/environment.h"
#include "server/web/plan_files.h"

namespace mendel::server {

class WebPage {
 public:
  /// `env` outlives it. `runner`: the executable, sandbox and work folder for plans' files.
  WebPage(Environment& env, std::string version, const RunnerOptions& runner)
      : env_(env),
        version_(std::move(version)),
        files_(runner, runner.work_folder, env.blobs, env.clock) {}

  /// Called by one thread at a time. May block on the store.
  HttpResponse Answer(const HttpRequest& request);

 private:
  absl::StatusOr<HttpResponse> Data(const HttpRequest& request);
  absl::StatusOr<Principal> Enter(const HttpRequest& request, std::string_view method);
  absl::StatusOr<Caller> Enter(const HttpRequest& request, std::string_view method,
                               const std::string& project);
  absl::StatusOr<HttpResponse> Session(const HttpRequest& request);
  /// Answers requests for a path below `jobs` of a project. `parts` is that path; its first part is
  /// "jobs".
  absl::StatusOr<HttpResponse> Jobs(const HttpRequest& request, const std::string& project,
                                    const std::vector<std::string>& parts);
  /// The same below `models` and `plans`.
  absl::StatusOr<HttpResponse> Models(const HttpRequest& request, const std::string& project);
  absl::StatusOr<HttpResponse> Plans(const HttpRequest& request, const std::string& project,
                                     const std::vector<std::string>& parts);
  /// POST: cancels a job or submits its work again.
  absl::StatusOr<HttpResponse> Act(const HttpRequest& request, const std::string& project,
                                   const std::vector<std::string>& parts);
  HttpResponse Refusal(const absl::Status& status);

  Environment& env_;
  const std::string version_;
  PlanFiles files_;
  int64_t refusals_ = 0;
};

}  // namespace mendel::server

#endif  // MENDEL_SERVER_WEB_WEB_PAGE_H_
