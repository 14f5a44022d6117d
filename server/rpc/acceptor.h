// Accepts new connections for gRPC, up to the server's limit. gRPC's own listener has no limit, and
// stops listening forever when the process has no descriptor left (1.51). Here connections beyond
// the limit are closed, and the others continue.
#ifndef MENDEL_SERVER_RPC_ACCEPTOR_H_
#define MENDEL_SERVER_RPC_ACCEPTOR_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace mendel::server {

/// One thread. Thread-safe.
class Acceptor {
 public:
  virtual ~Acceptor() = default;
  /// Takes no more connections, and removes its unix sockets.
  virtual void Stop() = 0;
  /// Ports in the order of the addresses; 1 for unix sockets.
  virtual const std::vector<int>& ports() const = 0;
};

/// An address to listen on, and the function that gets each connection's descriptor and owns it.
struct AcceptorAddress {
  std::string address;  ///< "host:port" (each address that the host has), "[v6]:port", "unix:path",
                        ///< "unix-abstract:name"
  std::function<void(int descriptor)> take;
};

struct AcceptorLimits {
  int64_t connections = 0;  ///< counts every descriptor that the process has more than now
  int64_t connections_per_address = 0;  ///< of one client address (server/client_address.h)
};

/// Binds the addresses and accepts connections at once. Raises the process's limit of descriptors
/// as far as allowed. If it stays too small, fewer connections are accepted, so that some are left
/// for files. `refused` is called for each connection closed because of the limit. Unavailable when
/// an address cannot be bound.
absl::StatusOr<std::unique_ptr<Acceptor>> StartAcceptor(std::vector<AcceptorAddress> addresses,
                                                        const AcceptorLimits& limits,
                                                        std::function<void()> refused);

}  // namespace mendel::server

#endif  // MENDEL_SERVER_RPC_ACCEPTOR_H_
