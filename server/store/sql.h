// The little that the job store needs of an SQL database, so that its logic is written once for
// SQLite and PostgreSQL.
//
// Statements are written in what both understand, with these marks: ?1 ?2 ... for parameters,
// {blob} for the type of bytes, {id} for a key that the database counts up, {lock} at the end of a
// SELECT whose rows the transaction will change, {skip} the same for rows that nobody else has
// locked. There are two types: 64-bit integers and bytes (every string is stored as bytes, since
// clients choose some of them).
#ifndef MENDEL_SERVER_STORE_SQL_H_
#define MENDEL_SERVER_STORE_SQL_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace mendel::server {

/// The messages of a database's errors begin with it.
inline constexpr std::string_view kJobStorePrefix = "job store: ";

using SqlValue = std::variant<int64_t, std::string>;

/// One row of an answer. A value of the other type is 0 or empty.
class SqlRow {
 public:
  explicit SqlRow(std::vector<SqlValue> values) : values_(std::move(values)) {}
  int64_t Int(size_t column) const;
  const std::string& Bytes(size_t column) const;

 private:
  std::vector<SqlValue> values_;
};
using SqlRows = std::vector<SqlRow>;

/// One connection within one transaction. Used by one thread at a time.
class SqlConnection {
 public:
  virtual ~SqlConnection() = default;
  /// Runs one statement, prepared once a connection. Unavailable: the database is busy or away;
  /// ResourceExhausted: the disk is full; PermissionDenied: it cannot be written; DataLoss: it is
  /// damaged.
  virtual absl::StatusOr<SqlRows> Run(const std::string& sql,
                                      const std::vector<SqlValue>& values) = 0;
  /// Until the transaction ends, no other transaction is beyond its own call of this.
  virtual absl::Status Serialize() = 0;
  /// The database's own consistency check; one sentence a violation.
  virtual absl::StatusOr<std::vector<std::string>> CheckIntegrity() = 0;
};

/// A database. Thread-safe.
class SqlDatabase {
 public:
  using Body = std::function<absl::Status(SqlConnection&)>;

  virtual ~SqlDatabase() = default;
  /// Runs `body` in a transaction; commits and makes it durable when it returns OK, otherwise
  /// nothing has happened. The body may run more than once.
  virtual absl::Status Write(const Body& body) = 0;
  /// Runs `body`, which only reads, on one snapshot.
  virtual absl::Status Read(const Body& body) = 0;
  /// JobStore::WaitForChange.
  virtual uint64_t WaitForChange(uint64_t seen, int64_t timeout_micros) = 0;
};

/// A statement with its marks replaced.
struct SqlDialect {
  std::string_view parameter;
  std::string_view blob;
  std::string_view id;
  std::string_view lock;
  std::string_view skip;
};
std::string Translate(const std::string& sql, const SqlDialect& dialect);

}  // namespace mendel::server

#endif  // MENDEL_SERVER_STORE_SQL_H_
