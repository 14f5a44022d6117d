// SQLite behind sql.h: WAL, synchronous=FULL, one writing connection and a pool of reading ones.
#ifndef MENDEL_SERVER_STORE_SQLITE_DATABASE_H_
#define MENDEL_SERVER_STORE_SQLITE_DATABASE_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "server/store/sql.h"

namespace mendel::server {

/// Opens or creates the file (its folder must exist). PermissionDenied when it cannot be written.
absl::StatusOr<std::unique_ptr<SqlDatabase>> OpenSqliteDatabase(const std::string& path);

}  // namespace mendel::server

#endif  // MENDEL_SERVER_STORE_SQLITE_DATABASE_H_
