// Results of request ids: a job (its own row has the id), or an existing
// answer.
#include "base/status.h"
#include "server/store/job_row.h"
#include "server/store/spec_names.h"
#include "server/store/sql_store.h"

namespace mendel::server {
namespace {

absl::StatusOr<std::optional<std::string>> Find(SqlConnection& sql, const std::string& client,
                                                const std::string& request_id,
                                                const v1::JobSpec& spec) {
  MENDEL_ASSIGN_OR_RETURN(const std::string project, ProjectOfSpec(spec));
  std::string answer;
  std::string first;
  const std::string query =
      Cat("SELECT ", JobColumns(),
          " FROM job WHERE client = ?1 AND request_id = ?2 AND project = ?3 AND "
          "length(request_id) > 0");
  MENDEL_ASSIGN_OR_RETURN(SqlRows rows, sql.Run(query, {client, request_id, project}));
  if (!rows.empty()) {
    MENDEL_ASSIGN_OR_RETURN(const JobRow row, ReadJob(rows.front()));
    answer = row.stored.job.name();
    first = row.stored.job.spec().SerializeAsString();
  } else {
    MENDEL_ASSIGN_OR_RETURN(
        rows, sql.Run("SELECT operation, spec FROM answered_request WHERE client = ?1 AND "
                      "request_id = ?2 AND project = ?3",
                      {client, request_id, project}));
    if (rows.empty()) return std::optional<std::string>();
    answer = rows.front().Bytes(0);
    first = rows.front().Bytes(1);
  }
  if (first == spec.SerializeAsString()) return std::optional(answer);
  return absl::AlreadyExistsError(
      Cat("request_id: '", request_id, "' was used for another job, ", answer));
}

}  // namespace

absl::StatusOr<std::optional<std::string>> SqlStore::FindRequest(const std::string& client,
                                                                 const std::string& request_id,
                                                                 const v1::JobSpec& spec) {
  std::optional<std::string> result;
  if (request_id.empty()) return result;
  MENDEL_RETURN_IF_ERROR(database_->Read([&](SqlConnection& sql) -> absl::Status {
    MENDEL_ASSIGN_OR_RETURN(result, Find(sql, client, request_id, spec));
    return absl::OkStatus();
  }));
  return result;
}

absl::StatusOr<std::string> SqlStore::RememberRequest(const std::string& client,
                                                      const std::string& request_id,
                                                      const v1::JobSpec& spec,
                                                      const std::string& operation) {
  std::string result = operation;
  if (request_id.empty()) return result;
  MENDEL_RETURN_IF_ERROR(database_->Write([&](SqlConnection& sql) -> absl::Status {
    // Another submission of the id may have come in this moment.
    MENDEL_RETURN_IF_ERROR(sql.Serialize());
    MENDEL_ASSIGN_OR_RETURN(const std::optional<std::string> known,
                            Find(sql, client, request_id, spec));
    result = known.value_or(operation);
    if (known.has_value()) return absl::OkStatus();
    return sql
        .Run(
            "INSERT INTO answered_request (client, request_id, spec, operation, answered, project) "
            "VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            {client, request_id, spec.SerializeAsString(), operation, clock_.WallMicros(),
             *ProjectOfSpec(spec)})
        .status();
  }));
  return result;
}

}  // namespace mendel::server
