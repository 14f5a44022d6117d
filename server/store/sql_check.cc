// References, deletion of old jobs, and consistency checks of the store.
#include <algorithm>
#include <set>

#include "base/status.h"
#include "server/store/blob_store.h"
#include "server/store/job_row.h"
#include "server/store/project_name.h"
#include "server/store/spec_names.h"
#include "server/store/sql_catalog.h"
#include "server/store/sql_store.h"
#include "server/store/sql_turns.h"

namespace mendel::server {
namespace {

using Violations = std::vector<std::string>;

void AddBlob(const std::string& blob_name, std::set<std::string>& keys) {
  const absl::StatusOr<BlobId> blob = ParseBlobName(blob_name);
  if (blob.ok()) keys.insert(BlobKey(*blob));
}

/// Calls `visit(name, message, project)` for every row of a table of messages.
template <class Message, class Visit>
absl::Status ForEach(SqlConnection& sql, const char* table, const Visit& visit) {
  // Rows are read in pieces: a store may be larger than memory.
  constexpr int64_t kPiece = 256;
  for (int64_t after = 0;;) {
    MENDEL_ASSIGN_OR_RETURN(const SqlRows rows,
                            sql.Run(Cat("SELECT id, name, body, project FROM ", table,
                                        " WHERE id > ?1 ORDER BY id LIMIT ?2"),
                                    {after, kPiece}));
    if (rows.empty()) return absl::OkStatus();
    for (const SqlRow& row : rows) {
      MENDEL_RETURN_IF_ERROR(
          visit(row.Bytes(1), ParseBody<Message>(row.Bytes(2), row.Bytes(1)), row.Bytes(3)));
    }
    after = rows.back().Int(0);
  }
}

/// True if a job may go from one state to the other.
bool MayFollow(v1::JobState from, v1::JobState to) {
  switch (from) {
    case v1::JOB_STATE_UNSPECIFIED:
      return to == v1::JOB_STATE_PENDING;
    case v1::JOB_STATE_PENDING:
      return to == v1::JOB_STATE_RUNNING || to == v1::JOB_STATE_CANCELLED;
    case v1::JOB_STATE_RUNNING:
      return to != v1::JOB_STATE_RUNNING && to != v1::JOB_STATE_UNSPECIFIED;
    case v1::JOB_STATE_CANCELLING:
      return HasEnded(to);
    default:
      return false;
  }
}

void CheckColumns(const SqlRow& row, const JobRow& loaded, Violations& violations) {
  const StoredJob& stored = loaded.stored;
  const v1::Job& job = stored.job;
  const std::string& name = row.Bytes(8);
  const auto demand = [&](bool holds, const char* what) {
    if (!holds) violations.push_back(Cat(name, ": ", what));
  };
  demand(job.name() == name && job.client() == row.Bytes(9) && job.state() == row.Int(10) &&
             job.priority() == row.Int(11),
         "the columns disagree with the message");
  const absl::StatusOr<std::string> project = ProjectOfSpec(job.spec());
  demand(project.ok() && *project == row.Bytes(13) && ProjectOf(name) == row.Bytes(13) &&
             ProjectOf(job.plan()) == (job.plan().empty() ? "" : row.Bytes(13)),
         "it names something of another project");
  demand(IsLeased(job.state()) == !stored.lease_owner.empty(),
         "a worker holds it although it is not running, or none although it is");
  demand(HasEnded(job.state()) == (row.Int(12) != 0) && HasEnded(job.state()) == job.has_end_time(),
         "its end time disagrees with its state");
  demand((job.state() == v1::JOB_STATE_FAILED) == job.has_error(),
         "it failed without an error, or has one without having failed");
  demand(stored.fence >= job.attempts() && job.attempts() >= 0,
         "it was tried more often than claimed");
}

/// Checks the journal: consecutive numbers, states in a possible order.
absl::Status CheckJournal(SqlConnection& sql, const JobRow& row, Violations& violations) {
  const v1::Job& job = row.stored.job;
  MENDEL_ASSIGN_OR_RETURN(
      const SqlRows events,
      sql.Run("SELECT sequence, kind, body FROM event WHERE job = ?1 ORDER BY sequence", {row.id}));
  v1::JobState state = v1::JOB_STATE_UNSPECIFIED;
  for (const SqlRow& found : events) {
    v1::JobEvent event;
    if (!event.ParseFromString(found.Bytes(2)) || event.sequence() != found.Int(0)) {
      violations.push_back(Cat(job.name(), ": event ", found.Int(0), " is damaged"));
      continue;
    }
    if (!event.has_state()) continue;
    if (!MayFollow(state, event.state())) {
      violations.push_back(Cat(job.name(), ": event ", found.Int(0), " goes from state ",
                               int{state}, " to ", int{event.state()}));
    }
    state = event.state();
  }
  if (state != job.state())
    violations.push_back(Cat(job.name(), ": its journal ends in another state"));
  const int64_t last = events.empty() ? 0 : events.back().Int(0);
  if (last != job.last_sequence())
    violations.push_back(
        Cat(job.name(), ": its journal ends at ", last, ", not ", job.last_sequence()));
  return absl::OkStatus();
}

absl::Status CheckJobs(SqlConnection& sql, Violations& violations) {
  const std::string query = Cat("SELECT ", JobColumns(),
                                ", name, client, state, priority, ended, project FROM job WHERE id "
                                "> ?1 ORDER BY id LIMIT 256");
  for (int64_t after = 0;;) {
    MENDEL_ASSIGN_OR_RETURN(const SqlRows rows, sql.Run(query, {after}));
    if (rows.empty()) break;
    for (const SqlRow& row : rows) {
      const absl::StatusOr<JobRow> job = ReadJob(row);
      if (!job.ok()) {
        violations.emplace_back(job.status().message());
        continue;
      }
      CheckColumns(row, *job, violations);
      MENDEL_RETURN_IF_ERROR(CheckJournal(sql, *job, violations));
    }
    after = rows.back().Int(0);
  }
  MENDEL_ASSIGN_OR_RETURN(
      const SqlRows orphans,
      sql.Run("SELECT COUNT(*) FROM event WHERE job NOT IN (SELECT id FROM job)", {}));
  if (orphans.front().Int(0) > 0)
    violations.push_back(Cat(orphans.front().Int(0), " events belong to no job"));
  return absl::OkStatus();
}

absl::Status CheckCatalog(SqlConnection& sql, Violations& violations) {
  const auto check = [&](const std::string& name, const auto& message, const std::string& project) {
    if (!message.ok() || message->name() != name || ProjectOf(name) != project)
      violations.push_back(Cat(name, ": the message is damaged or another's"));
    return absl::OkStatus();
  };
  MENDEL_RETURN_IF_ERROR(ForEach<v1::Model>(sql, "model", check));
  MENDEL_RETURN_IF_ERROR(ForEach<v1::Plan>(sql, "plan", check));
  MENDEL_ASSIGN_OR_RETURN(
      const SqlRows lost,
      sql.Run("SELECT COUNT(*) FROM work WHERE plan NOT IN (SELECT name FROM plan)", {}));
  if (lost.front().Int(0) > 0)
    violations.push_back(Cat(lost.front().Int(0), " remembered works name a plan that is gone"));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<std::string>> SqlStore::ReferencedBlobs() {
  std::set<std::string> keys;
  MENDEL_RETURN_IF_ERROR(database_->Read([&](SqlConnection& sql) -> absl::Status {
    keys.clear();
    // An unreadable row is an error, not a gap: its blobs would be collected as garbage.
    const auto add_model = [&](const std::string&, const absl::StatusOr<v1::Model>& model,
                               const std::string& project) -> absl::Status {
      if (!model.ok()) return model.status();
      for (const v1::ModelFile& file : model->files())
        keys.insert(BlobKey({file.digest().sha256(), 0, project}));
      return absl::OkStatus();
    };
    const auto add_plan = [&](const std::string&, const absl::StatusOr<v1::Plan>& plan,
                              const std::string&) -> absl::Status {
      if (plan.ok()) AddBlob(plan->blob(), keys);
      return plan.status();
    };
    const auto add_bundle = [&](const std::string&, const absl::StatusOr<v1::Job>& job,
                                const std::string&) -> absl::Status {
      if (job.ok()) AddBlob(job->bundle(), keys);
      return job.status();
    };
    MENDEL_RETURN_IF_ERROR(ForEach<v1::Model>(sql, "model", add_model));
    MENDEL_RETURN_IF_ERROR(ForEach<v1::Plan>(sql, "plan", add_plan));
    return ForEach<v1::Job>(sql, "job", add_bundle);
  }));
  return std::vector<std::string>(keys.begin(), keys.end());
}

absl::StatusOr<int64_t> SqlStore::DeleteEndedBefore(int64_t wall_micros) {
  int64_t deleted = 0;
  MENDEL_RETURN_IF_ERROR(database_->Write([&](SqlConnection& sql) -> absl::Status {
    MENDEL_ASSIGN_OR_RETURN(
        const SqlRows rows,
        sql.Run("DELETE FROM job WHERE ended <> 0 AND ended < ?1 RETURNING id", {wall_micros}));
    deleted = static_cast<int64_t>(rows.size());
    MENDEL_RETURN_IF_ERROR(ForgetIdleClients(sql));
    return sql.Run("DELETE FROM answered_request WHERE answered < ?1", {wall_micros}).status();
  }));
  return deleted;
}

absl::StatusOr<std::vector<std::string>> SqlStore::Check() {
  Violations violations;
  MENDEL_RETURN_IF_ERROR(database_->Read([&](SqlConnection& sql) -> absl::Status {
    MENDEL_ASSIGN_OR_RETURN(violations, sql.CheckIntegrity());
    MENDEL_RETURN_IF_ERROR(CheckJobs(sql, violations));
    return CheckCatalog(sql, violations);
  }));
  return violations;
}

}  // namespace mendel::server
