// The module libmendel_postgres.so: PostgreSQL behind sql.h. It is a module because libpq loads
// Kerberos and LDAP, which no other part needs and which cannot be linked statically.
#ifndef MENDEL_SERVER_STORE_POSTGRES_MODULE_H_
#define MENDEL_SERVER_STORE_POSTGRES_MODULE_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/store/sql.h"

namespace mendel::server {

/// Loads the module and connects. `module`: its file; empty: libmendel_postgres.so beside the
/// executable, or in ../lib from there. Unimplemented when there is none, FailedPrecondition when
/// it belongs to another version.
absl::StatusOr<std::unique_ptr<SqlDatabase>> OpenPostgresDatabase(const std::string& url,
                                                                  const std::string& module = "");

}  // namespace mendel::server

extern "C" {
/// Version of the module's source. It must equal the program's, since they share C++
/// types.
__attribute__((visibility("default"))) const char* MendelPostgresVersion();
/// A database that the caller deletes, or null and the reason.
__attribute__((visibility("default"))) mendel::server::SqlDatabase* MendelOpenPostgres(
    const char* url, absl::Status* status);
}

#endif  // MENDEL_SERVER_STORE_POSTGRES_MODULE_H_
