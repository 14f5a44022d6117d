// Common parts of the commands that talk to a server: its options, jobs and plans in words and
// JSON, following a job.
#ifndef MENDEL_CLIENT_REMOTE_H_
#define MENDEL_CLIENT_REMOTE_H_

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "absl/status/statusor.h"
#include "client/command.h"
#include "client/service/service_client.h"
#include "google/protobuf/duration.pb.h"

namespace CLI {
class App;
}

namespace mendel {

struct ServerOptions {
  ServiceOptions service;
  std::string call_time = "30s";
  std::string retry_time = "60s";
};

/// Declares --server, --token-file, the --ssl-grpc-* options of Triton's clients, --call-timeout
/// and --retry-time. MENDEL_SERVER, MENDEL_TOKEN_FILE and MENDEL_TOKEN are their defaults.
/// `with_default`: --server has a default (else it is empty unless given).
void AddServerOptions(CLI::App& app, ServerOptions& options, bool with_default = true);

/// A client that prints retries on standard error.
absl::StatusOr<std::unique_ptr<ServiceClient>> Connect(const ServerOptions& options,
                                                       Context& context);

/// A server's bug is no internal error of this program: Internal and Unknown become DataLoss ("the
/// server failed: ...").
absl::Status FromServer(const absl::Status& status);

/// "jobs/1" for "jobs/1" and "1"; the same for plans and models. Names in projects stay.
std::string FullName(const std::string& collection, const std::string& name);

google::protobuf::Duration DurationOf(double seconds);

/// "running", ... and back; InvalidArgument for other words.
std::string StateWord(v1::JobState state);
absl::StatusOr<v1::JobState> ParseState(const std::string& word);

nlohmann::ordered_json JobJson(const v1::Job& job);
nlohmann::ordered_json PlanJson(const v1::Plan& plan);
/// One line of a list.
std::string JobLine(const v1::Job& job);
std::string PlanLine(const v1::Plan& plan);

/// Uploads with a progress line.
absl::StatusOr<v1::Model> UploadModel(ServiceClient& client, const std::string& path,
                                      Context& context);
/// Shows a job's progress like the local command, until its end. Returns its result or its error.
/// An interrupt exits with 130 and a hint how to come back; the job continues.
absl::StatusOr<v1::Job> FollowJob(ServiceClient& client, const std::string& job,
                                  int64_t after_sequence, Context& context);
/// Downloads with a progress line and prints the plan's table.
absl::Status FetchPlan(ServiceClient& client, const std::string& plan, const std::string& path,
                       Context& context);
/// Reports a verdict and sets the exit code. Equivalent is good; so is equivalent-after-refit when
/// `refit_is_good`.
absl::Status ReportVerdict(const v1::Verdict& verdict, bool refit_is_good, Context& context);

}  // namespace mendel

#endif  // MENDEL_CLIENT_REMOTE_H_
