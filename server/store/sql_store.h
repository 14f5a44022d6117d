// JobStore over an SQL database: each call is one transaction. Its parts by subject: sql_jobs.cc,
// sql_requests.cc, sql_leases.cc, sql_turns.cc, sql_uploads.cc, sql_catalog.cc, sql_check.cc; the
// tables are in sql_schema.cc.
#ifndef MENDEL_SERVER_STORE_SQL_STORE_H_
#define MENDEL_SERVER_STORE_SQL_STORE_H_

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "server/clock.h"
#include "server/store/job_store.h"
#include "server/store/sql.h"

namespace mendel::server {

class SqlStore final : public JobStore {
 public:
  /// Brings the database to the current schema first. `clock` outlives the store.
  static absl::StatusOr<std::unique_ptr<JobStore>> Open(std::unique_ptr<SqlDatabase> database,
                                                        const Clock& clock);

  absl::StatusOr<StoredJob> Submit(const v1::JobSpec& spec, const std::string& client,
                                   const std::string& request_id, int32_t priority,
                                   const SubmitOptions& options) override;
  absl::StatusOr<std::optional<std::string>> FindRequest(const std::string& client,
                                                         const std::string& request_id,
                                                         const v1::JobSpec& spec) override;
  absl::StatusOr<std::string> RememberRequest(const std::string& client,
                                              const std::string& request_id,
                                              const v1::JobSpec& spec,
                                              const std::string& operation) override;
  absl::StatusOr<StoredJob> GetJob(const std::string& name) override;
  absl::StatusOr<Page<StoredJob>> ListJobs(const JobFilter& filter, int page_size,
                                           const std::string& token) override;
  absl::StatusOr<StoredJob> CancelJob(const std::string& name) override;
  absl::Status DeleteJob(const std::string& name) override;
  absl::StatusOr<std::vector<v1::JobEvent>> Events(const std::string& name, int64_t after,
                                                   int limit) override;

  absl::StatusOr<std::optional<StoredJob>> Claim(const std::string& owner,
                                                 int64_t lease_until_micros,
                                                 const ClaimFilter& filter) override;
  absl::StatusOr<v1::JobState> Renew(const std::string& name, int64_t fence,
                                     int64_t lease_until_micros) override;
  absl::Status AppendEvent(const std::string& name, int64_t fence, v1::JobEvent event) override;
  absl::Status Finish(const std::string& name, int64_t fence, const Outcome& outcome) override;
  absl::Status Release(const std::string& name, int64_t fence, bool counts) override;
  absl::StatusOr<std::vector<std::string>> ExpireLeases(int64_t now_micros,
                                                        int max_attempts) override;
  absl::StatusOr<std::map<v1::JobState, int64_t>> CountJobs() override;
  absl::StatusOr<std::map<std::string, int64_t>> CountPendingByDevice() override;
  uint64_t WaitForChange(uint64_t seen, int64_t timeout_micros) override {
    return database_->WaitForChange(seen, timeout_micros);
  }

  absl::StatusOr<v1::Model> PutModel(const v1::Model& model) override;
  absl::StatusOr<v1::Model> GetModel(const std::string& name) override;
  absl::StatusOr<Page<v1::Model>> ListModels(const ProjectFilter& project, int page_size,
                                             const std::string& token) override;
  absl::Status DeleteModel(const std::string& name) override;
  absl::StatusOr<v1::Plan> GetPlan(const std::string& name) override;
  absl::StatusOr<Page<v1::Plan>> ListPlans(const ProjectFilter& project, const std::string& model,
                                           int page_size, const std::string& token) override;
  absl::Status DeletePlan(const std::string& name) override;
  absl::StatusOr<std::optional<v1::Plan>> FindPlan(const std::string& work_key) override;
  absl::Status RememberPlan(const std::string& work_key, const std::string& plan) override;

  absl::Status ChargeUpload(const std::string& client, const std::string& file, int64_t bytes,
                            int64_t limit) override;
  absl::Status ForgetUpload(const std::string& client, const std::string& file) override;
  absl::Status ForgetUploadsBefore(int64_t wall_micros,
                                   const std::set<std::string>& stored) override;

  absl::StatusOr<std::vector<std::string>> ReferencedBlobs() override;
  absl::StatusOr<int64_t> DeleteEndedBefore(int64_t wall_micros) override;
  absl::StatusOr<std::vector<std::string>> Check() override;

 private:
  SqlStore(std::unique_ptr<SqlDatabase> database, const Clock& clock)
      : database_(std::move(database)), clock_(clock) {}

  std::unique_ptr<SqlDatabase> database_;
  const Clock& clock_;
};

}  // namespace mendel::server

#endif  // MENDEL_SERVER_STORE_SQL_STORE_H_
