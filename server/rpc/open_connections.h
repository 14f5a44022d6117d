// Counts the open connections of each client for an acceptor, which does not learn when the library
// that it gave them to closes them.
#ifndef MENDEL_SERVER_RPC_OPEN_CONNECTIONS_H_
#define MENDEL_SERVER_RPC_OPEN_CONNECTIONS_H_

#include <sys/stat.h>

#include <cstdint>
#include <map>
#include <set>
#include <string>

namespace mendel::server {

/// A descriptor is a connection of ours while it is still the same socket; that is looked at when a
/// client seems to have too many. Not thread-safe.
class OpenConnections {
 public:
  explicit OpenConnections(int64_t per_client) : per_client_(static_cast<size_t>(per_client)) {}

  /// Counts a new connection of `client` (server/client_address.h; empty: one that is not limited).
  /// False when the client has as many as it may: then it is not counted.
  bool Add(const std::string& client, int descriptor);

 private:
  struct Connection {
    std::string client;
    dev_t device = 0;
    ino_t socket = 0;
  };
  void Forget(int descriptor);
  void ForgetClosed(const std::string& client);

  const size_t per_client_;
  std::map<int, Connection> connections_;
  std::map<std::string, std::set<int>> by_client_;
};

}  // namespace mendel::server

#endif  // MENDEL_SERVER_RPC_OPEN_CONNECTIONS_H_
