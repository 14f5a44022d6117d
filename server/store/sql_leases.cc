// Calls of workers: claim, renew, report, finish, release; and the expiry of dead workers'
// leases.
#include <algorithm>

#include "base/status.h"
#include "google/rpc/code.pb.h"
#include "server/store/job_row.h"
#include "server/store/project_name.h"
#include "server/store/sql_catalog.h"
#include "server/store/sql_store.h"
#include "server/store/sql_turns.h"
#include "server/store/utf8.h"

namespace mendel::server {
namespace {

/// Loads the job for a write of the worker with its lease.
absl::StatusOr<JobRow> LoadHeld(SqlConnection& sql, const std::string& name, int64_t fence) {
  MENDEL_ASSIGN_OR_RETURN(JobRow row, LoadJob(sql, name, true));
  if (row.stored.fence != fence || !IsLeased(row.stored.job.state())) {
    return absl::AbortedError(
        Cat("the lease on ", name, " was lost (fence ", fence, ", now ", row.stored.fence, ")"));
  }
  return row;
}

/// Returns the job to the queue, or ends it if it was canceled. The fence grows, so that the last
/// worker cannot write any more.
absl::Status PutBack(SqlConnection& sql, JobRow& row, int64_t now_micros) {
  ++row.stored.fence;
  const bool cancelled = row.stored.job.state() == v1::JOB_STATE_CANCELLING;
  return ChangeState(sql, row, cancelled ? v1::JOB_STATE_CANCELLED : v1::JOB_STATE_PENDING,
                     now_micros);
}

absl::Status ExpireOne(SqlConnection& sql, JobRow& row, int64_t now_micros, int max_attempts) {
  v1::Job& job = row.stored.job;
  if (job.state() == v1::JOB_STATE_CANCELLING || job.attempts() < max_attempts)
    return PutBack(sql, row, now_micros);
  ++row.stored.fence;
  job.mutable_error()->set_code(google::rpc::ABORTED);
  job.mutable_error()->set_message(Cat("its worker was lost ", job.attempts(),
                                       " times (killed, or cut off); it is not tried again"));
  return ChangeState(sql, row, v1::JOB_STATE_FAILED, now_micros);
}

}  // namespace

absl::StatusOr<std::optional<StoredJob>> SqlStore::Claim(const std::string& owner,
                                                         int64_t lease_until_micros,
                                                         const ClaimFilter& filter) {
  if (owner.empty()) return InvalidInput("a lease needs an owner");
  std::optional<StoredJob> result;
  // A plain read comes first: a transaction that takes nothing would still notify all, also the
  // idle workers, of a change.
  bool some = false;
  MENDEL_RETURN_IF_ERROR(database_->Read([&](SqlConnection& sql) -> absl::Status {
    std::vector<SqlValue> values;
    const std::string condition = Takeable(filter, values);
    MENDEL_ASSIGN_OR_RETURN(
        const SqlRows rows,
        sql.Run(Cat("SELECT 1 FROM job WHERE ", condition, " LIMIT 1"), values));
    some = !rows.empty();
    return absl::OkStatus();
  }));
  if (!some) return result;
  MENDEL_RETURN_IF_ERROR(database_->Write([&](SqlConnection& sql) -> absl::Status {
    result.reset();
    MENDEL_ASSIGN_OR_RETURN(std::optional<JobRow> row, TakeTurn(sql, filter));
    if (!row) return absl::OkStatus();
    ++row->stored.fence;
    row->stored.lease_owner = owner;
    row->stored.lease_until_micros = lease_until_micros;
    row->stored.job.set_attempts(row->stored.job.attempts() + 1);
    MENDEL_RETURN_IF_ERROR(ChangeState(sql, *row, v1::JOB_STATE_RUNNING, clock_.WallMicros()));
    result = std::move(row->stored);
    return absl::OkStatus();
  }));
  return result;
}

absl::StatusOr<v1::JobState> SqlStore::Renew(const std::string& name, int64_t fence,
                                             int64_t lease_until_micros) {
  v1::JobState state = v1::JOB_STATE_UNSPECIFIED;
  MENDEL_RETURN_IF_ERROR(database_->Write([&](SqlConnection& sql) -> absl::Status {
    MENDEL_ASSIGN_OR_RETURN(JobRow row, LoadHeld(sql, name, fence));
    row.stored.lease_until_micros = lease_until_micros;
    state = row.stored.job.state();
    return SaveJob(sql, row);
  }));
  return state;
}

absl::Status SqlStore::AppendEvent(const std::string& name, int64_t fence, v1::JobEvent event) {
  if (event.event_case() != v1::JobEvent::kProgress &&
      event.event_case() != v1::JobEvent::kWarning) {
    return InvalidInput(
        "a worker appends progress and warnings; states change by Finish and Release");
  }
  return database_->Write([&](SqlConnection& sql) -> absl::Status {
    MENDEL_ASSIGN_OR_RETURN(JobRow row, LoadHeld(sql, name, fence));
    MENDEL_RETURN_IF_ERROR(AddEvent(sql, row, event, clock_.WallMicros()));
    return SaveJob(sql, row);
  });
}

absl::Status SqlStore::Finish(const std::string& name, int64_t fence, const Outcome& outcome) {
  if (!HasEnded(outcome.state)) return InvalidInput("a job ends as SUCCEEDED, FAILED or CANCELLED");
  return database_->Write([&](SqlConnection& sql) -> absl::Status {
    MENDEL_ASSIGN_OR_RETURN(JobRow row, LoadJob(sql, name, true));
    v1::Job& job = row.stored.job;
    // The worker repeats its own Finish because the answer was lost. (Expiry changes the
    // fence.)
    if (row.stored.fence == fence && job.state() == outcome.state) return absl::OkStatus();
    MENDEL_ASSIGN_OR_RETURN(row, LoadHeld(sql, name, fence));
    const int64_t now = clock_.WallMicros();
    if (outcome.plan.has_value()) {
      v1::Plan plan = *outcome.plan;
      if (plan.job().empty()) plan.set_job(name);
      if (ProjectOf(plan.name()) != ProjectOf(name) || ProjectOf(plan.blob()) != ProjectOf(name))
        return InternalError(plan.name(), " is of another project than ", name);
      MENDEL_ASSIGN_OR_RETURN(plan, PutPlan(sql, std::move(plan), now));
      job.set_plan(plan.name());
      if (!outcome.work_key.empty())
        MENDEL_RETURN_IF_ERROR(RememberWork(sql, outcome.work_key, plan.name()));
    }
    if (outcome.verdict.has_value()) *job.mutable_verdict() = *outcome.verdict;
    if (outcome.state == v1::JOB_STATE_FAILED) {
      *job.mutable_error() = outcome.error;
      job.mutable_error()->set_message(CleanUtf8(outcome.error.message()));
    }
    job.set_bundle(outcome.bundle);
    return ChangeState(sql, row, outcome.state, now);
  });
}

absl::Status SqlStore::Release(const std::string& name, int64_t fence, bool counts) {
  return database_->Write([&](SqlConnection& sql) -> absl::Status {
    MENDEL_ASSIGN_OR_RETURN(JobRow row, LoadHeld(sql, name, fence));
    if (!counts) row.stored.job.set_attempts(row.stored.job.attempts() - 1);
    return PutBack(sql, row, clock_.WallMicros());
  });
}

absl::StatusOr<std::vector<std::string>> SqlStore::ExpireLeases(int64_t now_micros,
                                                                int max_attempts) {
  const std::vector<SqlValue> values = {int64_t{v1::JOB_STATE_RUNNING},
                                        int64_t{v1::JOB_STATE_CANCELLING}, now_micros};
  const std::string query =
      Cat("SELECT ", JobColumns(),
          " FROM job WHERE state IN (?1, ?2) AND lease_until < ?3 ORDER BY id");
  // This runs every few seconds: it reads first and locks only if there is work.
  bool some = false;
  MENDEL_RETURN_IF_ERROR(database_->Read([&](SqlConnection& sql) -> absl::Status {
    MENDEL_ASSIGN_OR_RETURN(const SqlRows rows, sql.Run(query, values));
    some = !rows.empty();
    return absl::OkStatus();
  }));
  std::vector<std::string> names;
  if (!some) return names;
  MENDEL_RETURN_IF_ERROR(database_->Write([&](SqlConnection& sql) -> absl::Status {
    names.clear();
    MENDEL_ASSIGN_OR_RETURN(const SqlRows rows, sql.Run(query + "{skip}", values));
    for (const SqlRow& found : rows) {
      MENDEL_ASSIGN_OR_RETURN(JobRow row, ReadJob(found));
      names.push_back(row.stored.job.name());
      MENDEL_RETURN_IF_ERROR(ExpireOne(sql, row, clock_.WallMicros(), max_attempts));
    }
    return absl::OkStatus();
  }));
  return names;
}

absl::StatusOr<std::map<v1::JobState, int64_t>> SqlStore::CountJobs() {
  std::map<v1::JobState, int64_t> counts;
  MENDEL_RETURN_IF_ERROR(database_->Read([&](SqlConnection& sql) -> absl::Status {
    counts.clear();
    MENDEL_ASSIGN_OR_RETURN(const SqlRows rows,
                            sql.Run("SELECT state, COUNT(*) FROM job GROUP BY state", {}));
    for (const SqlRow& row : rows) counts[static_cast<v1::JobState>(row.Int(0))] = row.Int(1);
    return absl::OkStatus();
  }));
  return counts;
}

absl::StatusOr<std::map<std::string, int64_t>> SqlStore::CountPendingByDevice() {
  std::map<std::string, int64_t> counts;
  MENDEL_RETURN_IF_ERROR(database_->Read([&](SqlConnection& sql) -> absl::Status {
    counts.clear();
    MENDEL_ASSIGN_OR_RETURN(
        const SqlRows rows,
        sql.Run("SELECT device, COUNT(*) FROM job WHERE state = ?1 GROUP BY device",
                {int64_t{v1::JOB_STATE_PENDING}}));
    for (const SqlRow& row : rows) counts[DeviceOfColumn(row.Bytes(0))] = row.Int(1);
    return absl::OkStatus();
  }));
  return counts;
}

}  // namespace mendel::server
