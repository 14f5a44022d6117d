// Submit, look up, list, cancel and delete jobs.
#include <algorithm>

#include "absl/strings/cord.h"
#include "absl/strings/str_format.h"
#include "base/random.h"
#include "base/status.h"
#include "server/store/job_row.h"
#include "server/store/page_token.h"
#include "server/store/project_name.h"
#include "server/store/spec_names.h"
#include "server/store/sql_catalog.h"
#include "server/store/sql_store.h"
#include "server/store/sql_turns.h"

namespace mendel::server {
namespace {

/// A random UUID (RFC 4122, version 4) in the project.
std::string NewJobName(const std::string& project) {
  auto [high, low] = FreshEntropy();
  high = (high & 0xffffffffffff0fffULL) | 0x4000U;
  low = (low & 0x3fffffffffffffffULL) | 0x8000000000000000ULL;
  return JoinName(project, absl::StrFormat("jobs/%08x-%04x-%04x-%04x-%012x", high >> 32U,
                                           (high >> 16U) & 0xffffU, high & 0xffffU, low >> 48U,
                                           low & 0xffffffffffffULL));
}

absl::Status QueueFull(const std::string& message) {
  absl::Status status = absl::ResourceExhaustedError(message);
  status.SetPayload(kQueueFull, absl::Cord(message));
  return status;
}

absl::Status CheckLimits(SqlConnection& sql, const std::string& client,
                         const SubmitOptions& limits) {
  const int64_t pending = v1::JOB_STATE_PENDING;
  MENDEL_ASSIGN_OR_RETURN(const SqlRows total,
                          sql.Run("SELECT COUNT(*) FROM job WHERE state = ?1", {pending}));
  MENDEL_ASSIGN_OR_RETURN(
      const SqlRows own,
      sql.Run("SELECT COUNT(*) FROM job WHERE state = ?1 AND client = ?2", {pending, client}));
  if (limits.pending_total > 0 && total.front().Int(0) >= limits.pending_total) {
    return QueueFull(Cat("the queue is full: ", total.front().Int(0), " jobs wait"));
  }
  if (limits.pending_per_client > 0 && own.front().Int(0) >= limits.pending_per_client) {
    return QueueFull(Cat("this client's queue is full: ", own.front().Int(0), " of its jobs wait"));
  }
  return absl::OkStatus();
}

/// The device that the job's worker must have.
absl::StatusOr<std::string> NeededDevice(SqlConnection& sql, const v1::JobSpec& spec) {
  if (!spec.has_refit_plan()) return DeviceOf(spec);
  MENDEL_ASSIGN_OR_RETURN(const v1::Plan plan, LoadPlan(sql, spec.refit_plan().plan()));
  return RebindDeviceOf(plan);
}

absl::StatusOr<JobRow> Insert(SqlConnection& sql, StoredJob stored, const std::string& work_key,
                              int64_t now) {
  stored.job.set_state(v1::JOB_STATE_PENDING);
  *stored.job.mutable_create_time() = ToTimestamp(now);
  JobRow row{0, std::move(stored)};
  MENDEL_ASSIGN_OR_RETURN(const std::string device, NeededDevice(sql, row.stored.job.spec()));
  row.stored.device = DeviceOfColumn(device);
  MENDEL_RETURN_IF_ERROR(EnterQueue(sql, row.stored.job.client()));
  MENDEL_ASSIGN_OR_RETURN(
      const SqlRows rows,
      sql.Run("INSERT INTO job (name, client, request_id, state, priority, "
              "lease_owner, lease_until, fence, ended, body, device, cost, work_key, trace, "
              "project) VALUES (?1, ?2, ?3, ?4, ?5, ?6, 0, 0, 0, ?6, ?7, ?8, ?9, ?10, ?11) "
              "RETURNING id",
              {row.stored.job.name(), row.stored.job.client(), row.stored.request_id,
               int64_t{v1::JOB_STATE_PENDING}, int64_t{row.stored.job.priority()}, std::string(),
               device, CostOf(row.stored.job.spec()), work_key, row.stored.trace_parent,
               ProjectOf(row.stored.job.name())}));
  row.id = rows.front().Int(0);
  MENDEL_RETURN_IF_ERROR(ChangeState(sql, row, v1::JOB_STATE_PENDING, now));
  MENDEL_ASSIGN_OR_RETURN(const bool twin, HasTwinInFlight(sql, row.id, work_key));
  if (!twin) return row;
  v1::JobEvent event;
  event.set_warning("the same search is in flight; the job waits, and gets its plan");
  MENDEL_RETURN_IF_ERROR(AddEvent(sql, row, std::move(event), now));
  MENDEL_RETURN_IF_ERROR(SaveJob(sql, row));
  return row;
}

/// The job with its place in the queue.
absl::StatusOr<StoredJob> WithPosition(SqlConnection& sql, JobRow row) {
  std::vector<JobRow> rows = {std::move(row)};
  MENDEL_RETURN_IF_ERROR(FillQueuePositions(sql, rows));
  return std::move(rows.front().stored);
}

/// AlreadyExists when the id belongs to another spec's request that was answered without a
/// job.
absl::Status CheckRequest(SqlConnection& sql, const std::string& project, const std::string& client,
                          const std::string& request_id, const v1::JobSpec& spec) {
  if (request_id.empty()) return absl::OkStatus();
  MENDEL_ASSIGN_OR_RETURN(
      const SqlRows rows,
      sql.Run("SELECT spec, operation FROM answered_request WHERE client = ?1 AND request_id = ?2 "
              "AND project = ?3",
              {client, request_id, project}));
  if (rows.empty() || rows.front().Bytes(0) == spec.SerializeAsString()) return absl::OkStatus();
  return absl::AlreadyExistsError(
      Cat("request_id: '", request_id, "' was used for another job, ", rows.front().Bytes(1)));
}

std::string ListingName(const JobFilter& filter, int64_t mask) {
  return Cat("jobs/", mask, "/", filter.client, "/", filter.project.value_or("*"));
}

}  // namespace

absl::StatusOr<StoredJob> SqlStore::Submit(const v1::JobSpec& spec, const std::string& client,
                                           const std::string& request_id, int32_t priority,
                                           const SubmitOptions& options) {
  MENDEL_ASSIGN_OR_RETURN(const std::string project, ProjectOfSpec(spec));
  StoredJob result;
  MENDEL_RETURN_IF_ERROR(database_->Write([&](SqlConnection& sql) -> absl::Status {
    // Limits are counted: two concurrent submissions must not both be the last that fits.
    MENDEL_RETURN_IF_ERROR(sql.Serialize());
    if (!request_id.empty()) {
      const std::string query =
          Cat("SELECT ", JobColumns(),
              " FROM job WHERE client = ?1 AND request_id = ?2 AND project = ?3 AND "
              "length(request_id) > 0");
      MENDEL_ASSIGN_OR_RETURN(const SqlRows rows, sql.Run(query, {client, request_id, project}));
      if (!rows.empty()) {
        MENDEL_ASSIGN_OR_RETURN(JobRow row, ReadJob(rows.front()));
        if (row.stored.job.spec().SerializeAsString() != spec.SerializeAsString()) {
          return absl::AlreadyExistsError(Cat(
              "request_id: '", request_id, "' was used for another job, ", row.stored.job.name()));
        }
        MENDEL_ASSIGN_OR_RETURN(result, WithPosition(sql, std::move(row)));
        return absl::OkStatus();
      }
    }
    MENDEL_RETURN_IF_ERROR(CheckRequest(sql, project, client, request_id, spec));
    MENDEL_RETURN_IF_ERROR(CheckLimits(sql, client, options));
    StoredJob stored;
    stored.request_id = request_id;
    stored.trace_parent = options.trace_parent;
    stored.job.set_name(NewJobName(project));
    *stored.job.mutable_spec() = spec;
    stored.job.set_client(client);
    stored.job.set_priority(priority);
    MENDEL_ASSIGN_OR_RETURN(JobRow row,
                            Insert(sql, std::move(stored), options.work_key, clock_.WallMicros()));
    MENDEL_ASSIGN_OR_RETURN(result, WithPosition(sql, std::move(row)));
    return absl::OkStatus();
  }));
  return result;
}

absl::StatusOr<StoredJob> SqlStore::GetJob(const std::string& name) {
  StoredJob result;
  MENDEL_RETURN_IF_ERROR(database_->Read([&](SqlConnection& sql) -> absl::Status {
    MENDEL_ASSIGN_OR_RETURN(JobRow row, LoadJob(sql, name, false));
    MENDEL_ASSIGN_OR_RETURN(result, WithPosition(sql, std::move(row)));
    return absl::OkStatus();
  }));
  return result;
}

absl::StatusOr<Page<StoredJob>> SqlStore::ListJobs(const JobFilter& filter, int page_size,
                                                   const std::string& token) {
  int64_t mask = filter.states.empty() ? ~int64_t{0} : 0;
  for (const v1::JobState state : filter.states)
    mask |= int64_t{1} << std::clamp<int>(state, 0, 62);
  MENDEL_ASSIGN_OR_RETURN(const int64_t size, PageSize(page_size));
  MENDEL_ASSIGN_OR_RETURN(const int64_t before, ParsePageToken(ListingName(filter, mask), token));
  // ?1 twice would express "all clients", but then the index on clients would not be used.
  const std::string query =
      Cat("SELECT ", JobColumns(), " FROM job WHERE ",
          filter.client.empty() ? "?1 = ?1" : "client = ?1",
          filter.project ? " AND project = ?5" : " AND ?5 = ?5",
          " AND id < ?2 AND (?3 >> CAST(state AS INTEGER)) & 1 = 1 ORDER BY id DESC LIMIT ?4");
  Page<StoredJob> page;
  MENDEL_RETURN_IF_ERROR(database_->Read([&](SqlConnection& sql) -> absl::Status {
    MENDEL_ASSIGN_OR_RETURN(
        const SqlRows found,
        sql.Run(query, {filter.client, before, mask, size + 1, filter.project.value_or("")}));
    std::vector<JobRow> rows;
    for (size_t i = 0; i < std::min(found.size(), static_cast<size_t>(size)); ++i) {
      MENDEL_ASSIGN_OR_RETURN(JobRow job, ReadJob(found[i]));
      rows.push_back(std::move(job));
    }
    MENDEL_RETURN_IF_ERROR(FillQueuePositions(sql, rows));
    page = {};
    if (found.size() > rows.size())
      page.next_token = PageToken(ListingName(filter, mask), rows.back().id);
    for (JobRow& row : rows) page.items.push_back(std::move(row.stored));
    return absl::OkStatus();
  }));
  return page;
}

absl::StatusOr<StoredJob> SqlStore::CancelJob(const std::string& name) {
  StoredJob result;
  MENDEL_RETURN_IF_ERROR(database_->Write([&](SqlConnection& sql) -> absl::Status {
    MENDEL_ASSIGN_OR_RETURN(JobRow row, LoadJob(sql, name, true));
    const v1::JobState state = row.stored.job.state();
    if (state == v1::JOB_STATE_PENDING || state == v1::JOB_STATE_RUNNING) {
      const v1::JobState next =
          state == v1::JOB_STATE_PENDING ? v1::JOB_STATE_CANCELLED : v1::JOB_STATE_CANCELLING;
      MENDEL_RETURN_IF_ERROR(ChangeState(sql, row, next, clock_.WallMicros()));
    }
    result = std::move(row.stored);
    return absl::OkStatus();
  }));
  return result;
}

absl::Status SqlStore::DeleteJob(const std::string& name) {
  return database_->Write([&](SqlConnection& sql) -> absl::Status {
    MENDEL_ASSIGN_OR_RETURN(const JobRow row, LoadJob(sql, name, true));
    if (!HasEnded(row.stored.job.state())) {
      return absl::FailedPreconditionError(Cat(name, " has not ended; cancel it first"));
    }
    return sql.Run("DELETE FROM job WHERE id = ?1", {row.id}).status();
  });
}

absl::StatusOr<std::vector<v1::JobEvent>> SqlStore::Events(const std::string& name, int64_t after,
                                                           int limit) {
  std::vector<v1::JobEvent> events;
  MENDEL_RETURN_IF_ERROR(database_->Read([&](SqlConnection& sql) -> absl::Status {
    MENDEL_ASSIGN_OR_RETURN(const JobRow row, LoadJob(sql, name, false));
    MENDEL_ASSIGN_OR_RETURN(
        const SqlRows rows,
        sql.Run(
            "SELECT body FROM event WHERE job = ?1 AND sequence > ?2 ORDER BY sequence LIMIT ?3",
            {row.id, after, int64_t{std::max(limit, 0)}}));
    events.clear();
    for (const SqlRow& event : rows) {
      if (!events.emplace_back().ParseFromString(event.Bytes(0)))
        return absl::DataLossError(Cat("an event of ", name, " is damaged"));
    }
    return absl::OkStatus();
  }));
  return events;
}

}  // namespace mendel::server
