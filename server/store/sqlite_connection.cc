#include "server/store/sqlite_connection.h"

#include <sqlite3.h>

#include <chrono>
#include <thread>

#include "base/status.h"

namespace mendel::server {
namespace {

constexpr std::chrono::milliseconds kBusyTimeout{10'000};

constexpr SqlDialect kDialect = {"?", "BLOB", "INTEGER PRIMARY KEY AUTOINCREMENT", "", ""};

int Bind(sqlite3_stmt* statement, int index, const SqlValue& value) {
  if (const auto* number = std::get_if<int64_t>(&value))
    return sqlite3_bind_int64(statement, index, *number);
  const std::string& bytes = std::get<std::string>(value);
  return sqlite3_bind_blob64(statement, index, bytes.data(), bytes.size(), SQLITE_STATIC);
}

SqlRow ReadRow(sqlite3_stmt* statement) {
  std::vector<SqlValue> values;
  for (int column = 0; column < sqlite3_column_count(statement); ++column) {
    if (sqlite3_column_type(statement, column) == SQLITE_INTEGER) {
      values.emplace_back(static_cast<int64_t>(sqlite3_column_int64(statement, column)));
      continue;
    }
    const auto* data = static_cast<const char*>(sqlite3_column_blob(statement, column));
    const auto size = static_cast<size_t>(sqlite3_column_bytes(statement, column));
    values.emplace_back(data == nullptr ? std::string() : std::string(data, size));
  }
  return SqlRow(std::move(values));
}

}  // namespace

absl::StatusOr<std::unique_ptr<SqliteConnection>> SqliteConnection::Open(const std::string& path) {
  sqlite3* db = nullptr;
  const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
  const int result = sqlite3_open_v2(path.c_str(), &db, flags, nullptr);
  std::unique_ptr<SqliteConnection> connection(new SqliteConnection(db));
  if (result != SQLITE_OK) {
    return absl::PermissionDeniedError(
        Cat("cannot open the job store ", path, ": ", std::string(sqlite3_errmsg(db))));
  }
  sqlite3_extended_result_codes(db, 1);
  sqlite3_busy_timeout(db, static_cast<int>(kBusyTimeout.count()));
  // SQLite opens a file that it may not write for reading.
  if (sqlite3_db_readonly(db, "main") == 1)
    return absl::PermissionDeniedError(Cat("the job store ", path, " is read-only"));
  MENDEL_RETURN_IF_ERROR(Annotate(connection->SwitchToWriteAheadLog(), path));
  // KiB of pages in this connection's memory: a store has half a dozen connections, and the kernel
  // caches the file for all of them.
  constexpr const char* kCache = "PRAGMA cache_size = -256";
  for (const char* pragma : {"PRAGMA synchronous = FULL", "PRAGMA foreign_keys = ON", kCache}) {
    MENDEL_RETURN_IF_ERROR(Annotate(connection->Run(pragma, {}).status(), path));
  }
  return connection;
}

absl::Status SqliteConnection::SwitchToWriteAheadLog() {
  // The switch of a new file upgrades a read lock, and there SQLite answers "busy" at once instead
  // of waiting (two could wait for each other): of several programs that create one file, all but
  // one would fail.
  const auto give_up = std::chrono::steady_clock::now() + kBusyTimeout;
  for (;;) {
    const absl::Status status = Run("PRAGMA journal_mode = WAL", {}).status();
    if (!absl::IsUnavailable(status) || std::chrono::steady_clock::now() >= give_up) return status;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

SqliteConnection::~SqliteConnection() {
  for (const auto& [sql, statement] : statements_) sqlite3_finalize(statement);
  sqlite3_close(db_);
}

absl::Status SqliteConnection::Error(int code) const {
  const std::string text = Cat(kJobStorePrefix, std::string(sqlite3_errmsg(db_)));
  switch (code & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_READONLY:  // the disk became so: the file was writable when it was opened
    case SQLITE_CANTOPEN:
      return absl::UnavailableError(text);
    case SQLITE_FULL:
      return absl::ResourceExhaustedError(text);
    case SQLITE_PERM:
      return absl::PermissionDeniedError(text);
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return absl::DataLossError(text);
    // A write that does not fit (a file size limit, a quota) comes as this.
    case SQLITE_IOERR:
      return code == SQLITE_IOERR_WRITE ? absl::ResourceExhaustedError(text)
                                        : absl::UnavailableError(text);
    default:
      return InternalError(text);
  }
}

absl::StatusOr<sqlite3_stmt*> SqliteConnection::Prepare(const std::string& sql) {
  const auto found = statements_.find(sql);
  if (found != statements_.end()) return found->second;
  sqlite3_stmt* statement = nullptr;
  const std::string text = Translate(sql, kDialect);
  const int result =
      sqlite3_prepare_v3(db_, text.c_str(), -1, SQLITE_PREPARE_PERSISTENT, &statement, nullptr);
  if (result != SQLITE_OK) return Error(result);
  statements_[sql] = statement;
  return statement;
}

absl::StatusOr<SqlRows> SqliteConnection::Run(const std::string& sql,
                                              const std::vector<SqlValue>& values) {
  MENDEL_ASSIGN_OR_RETURN(sqlite3_stmt* const statement, Prepare(sql));
  int result = SQLITE_OK;
  for (size_t i = 0; i < values.size() && result == SQLITE_OK; ++i)
    result = Bind(statement, static_cast<int>(i) + 1, values[i]);
  SqlRows rows;
  if (result == SQLITE_OK) {
    while ((result = sqlite3_step(statement)) == SQLITE_ROW) rows.push_back(ReadRow(statement));
  }
  absl::Status status = result == SQLITE_DONE ? absl::OkStatus() : Error(result);
  sqlite3_reset(statement);
  sqlite3_clear_bindings(statement);
  if (!status.ok()) return status;
  return rows;
}

absl::StatusOr<std::vector<std::string>> SqliteConnection::CheckIntegrity() {
  MENDEL_ASSIGN_OR_RETURN(const SqlRows rows, Run("PRAGMA integrity_check", {}));
  std::vector<std::string> violations;
  for (const SqlRow& row : rows) {
    if (row.Bytes(0) != "ok") violations.push_back(Cat("SQLite: ", row.Bytes(0)));
  }
  return violations;
}

absl::Status SqliteConnection::Transaction(const char* begin, const SqlDatabase::Body& body) {
  MENDEL_RETURN_IF_ERROR(Run(begin, {}).status());
  absl::Status status = body(*this);
  if (status.ok()) status = Run("COMMIT", {}).status();
  // A failed statement may have rolled back by itself; a COMMIT that failed has not.
  if (!status.ok() && sqlite3_get_autocommit(db_) == 0) Run("ROLLBACK", {}).IgnoreError();
  return status;
}

int64_t SqliteConnection::DataVersion() {
  const absl::StatusOr<SqlRows> rows = Run("PRAGMA data_version", {});
  return rows.ok() && !rows->empty() ? rows->front().Int(0) : -1;
}

}  // namespace mendel::server
