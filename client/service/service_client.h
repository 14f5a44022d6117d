// A client of Mendel's service: models up, jobs watched, certified plans down.
//
//   ServiceOptions options;                       // address, TLS, token
//   auto client = ConnectService(options);
//   auto model = (*client)->Upload("model.onnx", {});
//   v1::JobSpec spec;
//   spec.mutable_optimize()->set_model(model->name());
//   auto name = (*client)->Submit(spec, {});
//   auto job = (*client)->Watch(*name, 0, {});    // until it has ended
//   (*client)->Download(job->plan(), "model.plan", {});
//
// Every call blocks and is retried by the rules of retry.h (repeating a call is
// harmless). It ends with the server's status otherwise. Jobs run on the server and
// survive the client; a job's name suffices to come back. Threads: several threads may
// use one client.
#ifndef MENDEL_CLIENT_SERVICE_SERVICE_CLIENT_H_
#define MENDEL_CLIENT_SERVICE_SERVICE_CLIENT_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/service/service_options.h"
#include "mendel/v1/jobs.pb.h"
#include "mendel/v1/models.pb.h"
#include "mendel/v1/plans.pb.h"

namespace mendel {

struct SubmitOptions {
  int priority = 0;  ///< -10 to 10
  /// The same id gives the same job. Empty: a fresh id, so that retries of this call still make
  /// only one job.
  std::string request_id;
};

struct JobQuery {
  std::vector<v1::JobState> states;  ///< empty: all
  std::string client;                ///< empty: as ListJobsRequest says
  std::string filter;                ///< docs/service.md, Filters; empty: all
  int limit = 50;                    ///< jobs at most; 0: all
};

struct PlanQuery {
  std::string model;   ///< empty: plans of all models
  std::string filter;  ///< docs/service.md, Filters; empty: all
  int limit = 50;      ///< plans at most; 0: all
};

class ServiceClient {
 public:
  using EventFunction = std::function<void(const v1::JobEvent& event)>;
  virtual ~ServiceClient() = default;

  /// Sends the missing parts of the ONNX file at `path` and its external data. An upload resumes
  /// automatically after a kill.
  virtual absl::StatusOr<v1::Model> Upload(const std::string& path,
                                           const TransferFunction& progress) = 0;
  /// Returns the job's name.
  virtual absl::StatusOr<std::string> Submit(const v1::JobSpec& spec,
                                             const SubmitOptions& options) = 0;
  /// Follows a job until it has ended, across lost connections; events come once, in order. Returns
  /// the ended job.
  virtual absl::StatusOr<v1::Job> Watch(const std::string& job, int64_t after_sequence,
                                        const EventFunction& on_event) = 0;
  virtual absl::StatusOr<v1::Job> GetJob(const std::string& job) = 0;
  virtual absl::StatusOr<std::vector<v1::Job>> ListJobs(const JobQuery& query) = 0;
  virtual absl::StatusOr<v1::Job> Cancel(const std::string& job) = 0;
  virtual absl::StatusOr<v1::Plan> GetPlan(const std::string& plan) = 0;
  virtual absl::StatusOr<std::vector<v1::Plan>> ListPlans(const PlanQuery& query) = 0;
  /// Writes the plan file to `path` (download.h: resumable, hash checked, all or nothing).
  virtual absl::StatusOr<v1::Plan> Download(const std::string& plan, const std::string& path,
                                            const TransferFunction& progress) = 0;
  /// OK when `service` ("": the server) can be used, Unavailable otherwise. Makes one attempt.
  virtual absl::StatusOr<bool> Health(const std::string& service) = 0;
};

/// Opens no connection yet; fails for options that cannot work (channel.h).
absl::StatusOr<std::unique_ptr<ServiceClient>> ConnectService(const ServiceOptions& options);

/// True when the job will not change any more.
bool HasEnded(v1::JobState state);
/// OK for a job that SUCCEEDED; its error for FAILED, Cancelled for CANCELLED.
absl::Status OutcomeOf(const v1::Job& job);

}  // namespace mendel

#endif  // MENDEL_CLIENT_SERVICE_SERVICE_CLIENT_H_
