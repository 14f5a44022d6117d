#include "server/store/job_row.h"

#include "base/status.h"
#include "server/store/sql_turns.h"
#include "server/store/utf8.h"

namespace mendel::server {

bool HasEnded(v1::JobState state) {
  return state == v1::JOB_STATE_SUCCEEDED || state == v1::JOB_STATE_FAILED ||
         state == v1::JOB_STATE_CANCELLED;
}

bool IsLeased(v1::JobState state) {
  return state == v1::JOB_STATE_RUNNING || state == v1::JOB_STATE_CANCELLING;
}

google::protobuf::Timestamp ToTimestamp(int64_t micros) {
  google::protobuf::Timestamp time;
  // Nanoseconds are never negative, also before 1970 (a clock may jump anywhere).
  const int64_t seconds = micros / 1'000'000 - (micros % 1'000'000 < 0 ? 1 : 0);
  time.set_seconds(seconds);
  time.set_nanos(static_cast<int32_t>(micros - seconds * 1'000'000) * 1000);
  return time;
}

std::string DeviceOfColumn(const std::string& column) { return column.empty() ? "cpu" : column; }

std::string JobColumns() {
  return "job.id, job.request_id, job.lease_owner, job.lease_until, job.fence, job.body, "
         "job.device, job.trace";
}

absl::StatusOr<JobRow> ReadJob(const SqlRow& row) {
  JobRow job;
  job.id = row.Int(0);
  job.stored.request_id = row.Bytes(1);
  job.stored.lease_owner = row.Bytes(2);
  job.stored.lease_until_micros = row.Int(3);
  job.stored.fence = row.Int(4);
  job.stored.device = DeviceOfColumn(row.Bytes(6));
  job.stored.trace_parent = row.Bytes(7);
  if (!job.stored.job.ParseFromString(row.Bytes(5)))
    return absl::DataLossError(Cat("job ", job.id, " cannot be read"));
  return job;
}

absl::StatusOr<JobRow> LoadJob(SqlConnection& sql, const std::string& name, bool to_change) {
  const std::string query =
      Cat("SELECT ", JobColumns(), " FROM job WHERE name = ?1", to_change ? "{lock}" : "");
  MENDEL_ASSIGN_OR_RETURN(const SqlRows rows, sql.Run(query, {name}));
  if (rows.empty()) return absl::NotFoundError(Cat("there is no job '", name, "'"));
  return ReadJob(rows.front());
}

absl::Status SaveJob(SqlConnection& sql, const JobRow& row) {
  const StoredJob& stored = row.stored;
  int64_t ended = 0;
  if (HasEnded(stored.job.state())) {
    ended = stored.job.end_time().seconds() * 1'000'000 + stored.job.end_time().nanos() / 1000;
    if (ended == 0) ended = 1;  // 0 says that it has not ended
  }
  const std::string body = stored.job.SerializeAsString();
  // A message with text that is not UTF-8 can be written, but never read again.
  if (!v1::Job().ParseFromString(body))
    return InvalidInput("a text of ", stored.job.name(), " is not UTF-8");
  return sql
      .Run(
          "UPDATE job SET state = ?2, lease_owner = ?3, lease_until = ?4, fence = ?5, ended = ?6, "
          "body = ?7 WHERE id = ?1",
          {row.id, int64_t{stored.job.state()}, stored.lease_owner, stored.lease_until_micros,
           stored.fence, ended, body})
      .status();
}

absl::Status AddEvent(SqlConnection& sql, JobRow& row, v1::JobEvent event, int64_t now_micros) {
  const int64_t sequence = row.stored.job.last_sequence() + 1;
  row.stored.job.set_last_sequence(sequence);
  event.set_sequence(sequence);
  *event.mutable_time() = ToTimestamp(now_micros);
  // Texts of workers arrive here.
  if (event.has_warning()) event.set_warning(CleanUtf8(event.warning()));
  if (event.has_progress()) {
    event.mutable_progress()->set_phase(CleanUtf8(event.progress().phase()));
    event.mutable_progress()->set_detail(CleanUtf8(event.progress().detail()));
  }
  const EventKind kind = event.has_state()      ? kStateEvent
                         : event.has_progress() ? kProgressEvent
                                                : kWarningEvent;
  if (kind == kProgressEvent) *row.stored.job.mutable_progress() = event.progress();
  MENDEL_RETURN_IF_ERROR(
      sql.Run("INSERT INTO event (job, sequence, kind, body) VALUES (?1, ?2, ?3, ?4)",
              {row.id, sequence, int64_t{kind}, event.SerializeAsString()})
          .status());
  // Events are thinned out at intervals, so that the cost is small.
  if (kind != kProgressEvent || sequence % 64 != 0) return absl::OkStatus();
  return sql
      .Run("DELETE FROM event WHERE job = ?1 AND sequence <= ?2 AND kind = ?3",
           {row.id, sequence - kKeptProgressEvents, int64_t{kProgressEvent}})
      .status();
}

absl::Status ChangeState(SqlConnection& sql, JobRow& row, v1::JobState state, int64_t now_micros) {
  v1::Job& job = row.stored.job;
  if (state == v1::JOB_STATE_PENDING) MENDEL_RETURN_IF_ERROR(EnterQueue(sql, job.client()));
  job.set_state(state);
  if (state == v1::JOB_STATE_RUNNING && !job.has_start_time())
    *job.mutable_start_time() = ToTimestamp(now_micros);
  if (HasEnded(state)) *job.mutable_end_time() = ToTimestamp(now_micros);
  if (!IsLeased(state)) {
    row.stored.lease_owner.clear();
    row.stored.lease_until_micros = 0;
  }
  v1::JobEvent event;
  event.set_state(state);
  MENDEL_RETURN_IF_ERROR(AddEvent(sql, row, std::move(event), now_micros));
  return SaveJob(sql, row);
}

}  // namespace mendel::server
