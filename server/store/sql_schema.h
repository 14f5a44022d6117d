// The tables of the job store, and how an older file becomes a current one.
#ifndef MENDEL_SERVER_STORE_SQL_SCHEMA_H_
#define MENDEL_SERVER_STORE_SQL_SCHEMA_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "server/store/sql.h"

namespace mendel::server {

/// Statements that lead from version i to version i + 1. Released entries never change; a change of
/// the schema appends one.
const std::vector<std::vector<std::string>>& SchemaSteps();

/// Brings a database to version `steps.size()` in one transaction: several processes may do it at
/// once, one does it. FailedPrecondition for a database of a later version.
absl::Status Migrate(SqlDatabase& database,
                     const std::vector<std::vector<std::string>>& steps = SchemaSteps());

}  // namespace mendel::server

#endif  // MENDEL_SERVER_STORE_SQL_SCHEMA_H_
