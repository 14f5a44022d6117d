// The gRPC server: addresses, credentials, services, health, and how it stops.
#ifndef MENDEL_SERVER_RPC_RPC_SERVER_H_
#define MENDEL_SERVER_RPC_RPC_SERVER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/rpc/environment.h"

namespace grpc {
class Channel;
}

namespace mendel::server {

class RpcServer {
 public:
  virtual ~RpcServer() = default;
  /// Ports of the addresses, in the order of `listen`; without meaning for unix sockets.
  virtual const std::vector<int>& ports() const = 0;
  /// Health of all services (`jobs`), and of the one that takes uploads (`uploads` too).
  virtual void SetHealth(bool jobs, bool uploads) = 0;
  /// Health says NOT_SERVING, new jobs are refused, watchers are reported to come back. Other calls
  /// go on.
  virtual void BeginDrain() = 0;
  /// Ends calls after the time and stops.
  virtual void Stop(int64_t timeout_micros) = 0;
  /// A channel within this process (tests).
  virtual std::shared_ptr<grpc::Channel> InProcessChannel() = 0;
};

/// `env` outlives the server. InvalidArgument for certificates that cannot be used, Unavailable for
/// addresses that are taken.
absl::StatusOr<std::unique_ptr<RpcServer>> StartRpcServer(Environment& env);

/// Reads certificate, key and root files as the server would. InvalidArgument names the option.
absl::Status CheckCertificates(const ServerOptions& options);

}  // namespace mendel::server

#endif  // MENDEL_SERVER_RPC_RPC_SERVER_H_
