// A job's row and its journal, as the parts of the SQL store share them.
#ifndef MENDEL_SERVER_STORE_JOB_ROW_H_
#define MENDEL_SERVER_STORE_JOB_ROW_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "google/protobuf/timestamp.pb.h"
#include "server/store/job_store.h"
#include "server/store/sql.h"

namespace mendel::server {

/// Kinds of events as the column `event.kind` has them.
enum EventKind : int64_t { kStateEvent = 1, kProgressEvent = 2, kWarningEvent = 3 };

/// The newest progress events of a job that are kept; states and warnings are kept all.
inline constexpr int64_t kKeptProgressEvents = 512;

struct JobRow {
  int64_t id = 0;
  StoredJob stored;
};

/// StoredJob::device by the column `device`.
std::string DeviceOfColumn(const std::string& column);
/// The columns that ReadJob reads, for SELECT.
std::string JobColumns();
absl::StatusOr<JobRow> ReadJob(const SqlRow& row);
/// NotFound. `to_change`: the row stays locked until the transaction ends.
absl::StatusOr<JobRow> LoadJob(SqlConnection& sql, const std::string& name, bool to_change);
/// Writes the row back.
absl::Status SaveJob(SqlConnection& sql, const JobRow& row);
/// Gives the event the next number and its time and adds it to the journal; the caller saves the
/// row.
absl::Status AddEvent(SqlConnection& sql, JobRow& row, v1::JobEvent event, int64_t now_micros);
/// Sets the state, the times that belong to it and its event; gives up the lease unless the new
/// state has one; saves the row.
absl::Status ChangeState(SqlConnection& sql, JobRow& row, v1::JobState state, int64_t now_micros);

bool HasEnded(v1::JobState state);
/// A worker has it.
bool IsLeased(v1::JobState state);
google::protobuf::Timestamp ToTimestamp(int64_t micros);

}  // namespace mendel::server

#endif  // MENDEL_SERVER_STORE_JOB_ROW_H_
