#include "server/store/sql_schema.h"

#include "base/status.h"

namespace mendel::server {

const std::vector<std::vector<std::string>>& SchemaSteps() {
  // `body` is the message (Job, JobEvent, Model, Plan) with all its fields; the other columns
  // repeat the searched ones.
  static const auto* const steps = new std::vector<std::vector<std::string>>{
      {
          "CREATE TABLE job (id {id}, name {blob} NOT NULL UNIQUE, client {blob} NOT NULL, "
          "request_id {blob} NOT NULL, "
          "state BIGINT NOT NULL, priority BIGINT NOT NULL, lease_owner {blob} NOT NULL, "
          "lease_until BIGINT NOT NULL, "
          "fence BIGINT NOT NULL, ended BIGINT NOT NULL, body {blob} NOT NULL)",
          "CREATE UNIQUE INDEX job_request ON job (client, request_id) WHERE length(request_id) > "
          "0",
          "CREATE INDEX job_state ON job (state, client, priority)",
          "CREATE INDEX job_client ON job (client, id)",
          // kind: 1 state, 2 progress, 3 warning.
          "CREATE TABLE event (job BIGINT NOT NULL REFERENCES job (id) ON DELETE CASCADE, sequence "
          "BIGINT NOT NULL, "
          "kind BIGINT NOT NULL, body {blob} NOT NULL, PRIMARY KEY (job, sequence))",
          "CREATE TABLE model (id {id}, name {blob} NOT NULL UNIQUE, body {blob} NOT NULL)",
          "CREATE TABLE plan (id {id}, name {blob} NOT NULL UNIQUE, model {blob} NOT NULL, body "
          "{blob} NOT NULL)",
          "CREATE INDEX plan_model ON plan (model, id)",
          "CREATE TABLE work (work_key {blob} PRIMARY KEY, plan {blob} NOT NULL REFERENCES plan "
          "(name) ON DELETE CASCADE)",
          "CREATE INDEX work_plan ON work (plan)",
      },
      {
          // Requests that an existing plan answered; other requests are in their job's row.
          "CREATE TABLE request (client {blob} NOT NULL, request_id {blob} NOT NULL, spec {blob} "
          "NOT NULL, operation {blob} NOT "
          "NULL, "
          "answered BIGINT NOT NULL, PRIMARY KEY (client, request_id))",
      },
      {
          // The device that a job's worker must have; empty: any worker will do.
          "ALTER TABLE job ADD COLUMN device {blob} NOT NULL DEFAULT ''",
      },
      {
          // Turns of clients (sql_turns.h). `cost`: seconds that the job's spec requests.
          "ALTER TABLE job ADD COLUMN cost BIGINT NOT NULL DEFAULT 60",
          // Jobs of one key are one search; see Claim.
          "ALTER TABLE job ADD COLUMN work_key {blob} NOT NULL DEFAULT ''",
          "CREATE INDEX job_work ON job (work_key, state) WHERE length(work_key) > 0",
          "ALTER TABLE job ADD COLUMN trace {blob} NOT NULL DEFAULT ''",
          "CREATE TABLE turn (client {blob} PRIMARY KEY, spent BIGINT NOT NULL, served BIGINT NOT "
          "NULL)",
          // Uploaded files by client (sql_uploads.cc), where there is a quota. `sha256`: BlobKey.
          "CREATE TABLE upload (client {blob} NOT NULL, sha256 {blob} NOT NULL, bytes BIGINT NOT "
          "NULL, charged BIGINT NOT NULL, PRIMARY KEY (client, sha256))",
      },
      {
          // Projects (project_name.h): what was there is of the project "default", which is ''.
          "ALTER TABLE job ADD COLUMN project {blob} NOT NULL DEFAULT ''",
          "ALTER TABLE model ADD COLUMN project {blob} NOT NULL DEFAULT ''",
          "ALTER TABLE plan ADD COLUMN project {blob} NOT NULL DEFAULT ''",
          // SQLite takes the default for text, which no bytes equal.
          "UPDATE job SET project = CAST('' AS {blob})",
          "UPDATE model SET project = CAST('' AS {blob})",
          "UPDATE plan SET project = CAST('' AS {blob})",
          "CREATE INDEX job_project ON job (project, id)",
          "CREATE INDEX model_project ON model (project, id)",
          "CREATE INDEX plan_project ON plan (project, id)",
          // A request id is its client's within a project.
          "DROP INDEX job_request",
          "CREATE UNIQUE INDEX job_request ON job (project, client, request_id) WHERE "
          "length(request_id) > 0",
          "CREATE TABLE answered_request (project {blob} NOT NULL, client {blob} NOT NULL, "
          "request_id {blob} NOT NULL, spec {blob} NOT NULL, operation {blob} NOT NULL, answered "
          "BIGINT NOT NULL, PRIMARY KEY (project, client, request_id))",
          "INSERT INTO answered_request (project, client, request_id, spec, operation, answered) "
          "SELECT CAST('' AS {blob}), client, request_id, spec, operation, answered FROM request",
          "DROP TABLE request",
      },
  };
  return *steps;
}

absl::Status Migrate(SqlDatabase& database, const std::vector<std::vector<std::string>>& steps) {
  const auto wanted = static_cast<int64_t>(steps.size());
  return database.Write([&](SqlConnection& sql) -> absl::Status {
    MENDEL_RETURN_IF_ERROR(sql.Serialize());
    MENDEL_RETURN_IF_ERROR(
        sql.Run("CREATE TABLE IF NOT EXISTS schema_version (version BIGINT NOT NULL)", {})
            .status());
    MENDEL_ASSIGN_OR_RETURN(const SqlRows rows, sql.Run("SELECT version FROM schema_version", {}));
    const int64_t found = rows.empty() ? 0 : rows.front().Int(0);
    if (found == wanted) return absl::OkStatus();
    if (found > wanted) {
      return absl::FailedPreconditionError(Cat("the job store is of version ", found,
                                               "; this program knows versions up to ", wanted,
                                               ". Use a newer program"));
    }
    for (int64_t step = found; step < wanted; ++step) {
      for (const std::string& statement : steps[static_cast<size_t>(step)]) {
        MENDEL_RETURN_IF_ERROR(
            Annotate(sql.Run(statement, {}).status(), Cat("schema step ", step + 1)));
      }
    }
    MENDEL_RETURN_IF_ERROR(sql.Run("DELETE FROM schema_version", {}).status());
    return sql.Run("INSERT INTO schema_version (version) VALUES (?1)", {wanted}).status();
  });
}

}  // namespace mendel::server
