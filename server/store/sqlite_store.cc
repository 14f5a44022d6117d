#include "base/status.h"
#include "server/store/sql_schema.h"
#include "server/store/sql_store.h"
#include "server/store/sqlite_database.h"

namespace mendel::server {

absl::StatusOr<std::unique_ptr<JobStore>> SqlStore::Open(std::unique_ptr<SqlDatabase> database,
                                                         const Clock& clock) {
  MENDEL_RETURN_IF_ERROR(Migrate(*database));
  return std::unique_ptr<JobStore>(new SqlStore(std::move(database), clock));
}

absl::StatusOr<std::unique_ptr<JobStore>> OpenSqliteStore(const std::string& path,
                                                          const Clock& clock) {
  MENDEL_ASSIGN_OR_RETURN(std::unique_ptr<SqlDatabase> database, OpenSqliteDatabase(path));
  return SqlStore::Open(std::move(database), clock);
}

}  // namespace mendel::server
