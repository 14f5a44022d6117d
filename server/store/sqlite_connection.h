// One connection to an SQLite file.
#ifndef MENDEL_SERVER_STORE_SQLITE_CONNECTION_H_
#define MENDEL_SERVER_STORE_SQLITE_CONNECTION_H_

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "server/store/sql.h"

struct sqlite3;
struct sqlite3_stmt;

namespace mendel::server {

/// Not thread-safe: one user at a time.
class SqliteConnection final : public SqlConnection {
 public:
  /// Waits up to ten seconds for writers of other processes.
  static absl::StatusOr<std::unique_ptr<SqliteConnection>> Open(const std::string& path);
  ~SqliteConnection() override;

  absl::StatusOr<SqlRows> Run(const std::string& sql, const std::vector<SqlValue>& values) override;
  /// Nothing to do: BEGIN IMMEDIATE has made this the only writer.
  absl::Status Serialize() override { return absl::OkStatus(); }
  absl::StatusOr<std::vector<std::string>> CheckIntegrity() override;
  /// Runs `body` between `begin` and COMMIT, or ROLLBACK when it fails.
  absl::Status Transaction(const char* begin, const SqlDatabase::Body& body);
  /// Changes with every commit of any other connection to the file.
  int64_t DataVersion();

 private:
  explicit SqliteConnection(sqlite3* db) : db_(db) {}
  absl::Status SwitchToWriteAheadLog();
  absl::StatusOr<sqlite3_stmt*> Prepare(const std::string& sql);
  absl::Status Error(int code) const;

  sqlite3* db_;
  std::unordered_map<std::string, sqlite3_stmt*> statements_;
};

}  // namespace mendel::server

#endif  // MENDEL_SERVER_STORE_SQLITE_CONNECTION_H_
