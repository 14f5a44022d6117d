// One connection to PostgreSQL (libpq).
#ifndef MENDEL_SERVER_STORE_POSTGRES_CONNECTION_H_
#define MENDEL_SERVER_STORE_POSTGRES_CONNECTION_H_

#include <libpq-fe.h>

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "server/store/sql.h"

namespace mendel::server {

/// Not thread-safe: one user at a time.
class PostgresConnection final : public SqlConnection {
 public:
  /// `url`: postgresql://... (libpq's documentation, 34.1.1.2). Unavailable when nobody answers
  /// within ten seconds.
  static absl::StatusOr<std::unique_ptr<PostgresConnection>> Open(const std::string& url);

  absl::StatusOr<SqlRows> Run(const std::string& sql, const std::vector<SqlValue>& values) override;
  absl::Status Serialize() override;
  /// PostgreSQL has no check of its own that a client may request.
  absl::StatusOr<std::vector<std::string>> CheckIntegrity() override {
    return std::vector<std::string>();
  }
  /// Runs `body` between `begin` and COMMIT, or ROLLBACK when it fails.
  absl::Status Transaction(const char* begin, const SqlDatabase::Body& body);

  /// The server has gone, or the network.
  bool broken() const { return PQstatus(connection_.get()) != CONNECTION_OK; }
  /// The last statement failed because of what others did at the same time: the transaction may be
  /// tried again.
  bool conflict() const { return conflict_; }
  /// Waits for a notification, at most so long and until `wake` (a file descriptor) can be read.
  /// False when the connection broke.
  bool WaitForNotification(int wake, int timeout_milliseconds, bool& notified);

 private:
  struct Close {
    void operator()(PGconn* connection) const { PQfinish(connection); }
    void operator()(PGresult* result) const { PQclear(result); }
  };
  using Result = std::unique_ptr<PGresult, Close>;

  explicit PostgresConnection(PGconn* connection) : connection_(connection) {}
  absl::StatusOr<std::string> Prepare(const std::string& sql, const std::vector<SqlValue>& values);
  absl::Status Error(const PGresult* result);

  std::unique_ptr<PGconn, Close> connection_;
  std::unordered_map<std::string, std::string> statements_;  ///< names by text
  bool conflict_ = false;
};

}  // namespace mendel::server

#endif  // MENDEL_SERVER_STORE_POSTGRES_CONNECTION_H_
