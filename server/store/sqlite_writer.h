// The one writing connection of a process to an SQLite file. Transactions that come at the same
// time share a commit, and with it the wait for the disk, which is most of what a small transaction
// costs.
#ifndef MENDEL_SERVER_STORE_SQLITE_WRITER_H_
#define MENDEL_SERVER_STORE_SQLITE_WRITER_H_

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "absl/status/status.h"
#include "server/store/sql.h"
#include "server/store/sqlite_connection.h"

namespace mendel::server {

/// Thread-safe. The first of the waiting callers runs the bodies of all who wait, each in a
/// savepoint of its own, and commits; a body that fails is rolled back alone. When the common
/// transaction fails, each body is run again in its own.
class SqliteWriter {
 public:
  explicit SqliteWriter(std::unique_ptr<SqliteConnection> connection)
      : connection_(std::move(connection)) {}

  /// SqlDatabase::Write.
  absl::Status Write(const SqlDatabase::Body& body);

 private:
  struct Request {
    const SqlDatabase::Body* body;
    absl::Status status;
    bool done = false;
  };
  void RunGroup(const std::vector<Request*>& group);
  /// False: nothing has happened, and each is to be run alone.
  bool RunTogether(const std::vector<Request*>& group);

  std::unique_ptr<SqliteConnection> connection_;  // the leader's
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Request*> waiting_;
  bool leading_ = false;
};

}  // namespace mendel::server

#endif  // MENDEL_SERVER_STORE_SQLITE_WRITER_H_
