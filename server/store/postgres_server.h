// A PostgreSQL of the tests' own, in a temporary folder, on a Unix socket, as a user who is not
// root.
#ifndef MENDEL_SERVER_STORE_POSTGRES_SERVER_H_
#define MENDEL_SERVER_STORE_POSTGRES_SERVER_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "server/store/conformance.h"

namespace mendel::server {

class PostgresServer {
 public:
  /// Makes the database cluster and starts it. Unavailable with the reason when this machine has no
  /// initdb.
  static absl::StatusOr<std::unique_ptr<PostgresServer>> Start();
  ~PostgresServer();

  /// `schema`: the connection's default schema, made by Schema().
  std::string Url(const std::string& schema) const;
  /// A new, empty schema: as good as a database of its own, and made in a moment.
  absl::StatusOr<std::string> Schema();
  /// kill -9 of every process of the server.
  void Kill();
  /// Starts it again, and returns once it answers.
  absl::Status Restart();

 private:
  PostgresServer() = default;
  absl::Status Run();

  TestFolder folder_;
  std::string programs_;  ///< folder of initdb and postgres
  int pid_ = 0;
  int schemas_ = 0;
};

}  // namespace mendel::server

#endif  // MENDEL_SERVER_STORE_POSTGRES_SERVER_H_
