// mendeld: the stores, the runner, the gRPC server, the metrics endpoint and the web page put together, from start to drained.
#ifndef MENDEL_SERVER_DAEMON_H_
#define MENDEL_SERVER_DAEMON_H_

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/clock.h"
#include "server/log.h"
#include "server/options.h"

namespace mendel::server {

/// What the build-info metric tells.
struct BuildInfo {
  std::string version;
  std::string commit;
};

class RpcServer;

/// Not thread-safe, but for what its parts do by themselves.
class Daemon {
 public:
  /// Opens or creates the data folder, gives jobs of a dead predecessor back to the queue, and serves. `options`, `clock` and `log`
  /// outlive it.
  static absl::StatusOr<std::unique_ptr<Daemon>> Start(const ServerOptions& options, const BuildInfo& build, const Clock& clock,
                                                       Logger& log);
  virtual ~Daemon() = default;
  /// Once a second: leases, retention, garbage, changed auth files.
  virtual void Tick() = 0;
  /// Reads the auth file now (certificates are watched anyway).
  virtual void Reload() = 0;
  /// Health says NOT_SERVING, watchers are told, running jobs go back to the queue; returns when all is safe or the time is over.
  virtual void Drain() = 0;
  virtual RpcServer& rpc() = 0;
  virtual int metrics_port() const = 0;
  /// Of the web page; 0: there is none.
  virtual int page_port() const = 0;
};

/// Everything that can be found wrong without serving: values, certificates, the auth file, the data folder. What `--check-config`
/// does.
absl::Status CheckConfig(const ServerOptions& options);

/// Serves until SIGTERM or SIGINT, then drains. SIGHUP reloads. Handles signals of the process.
absl::Status Serve(const ServerOptions& options, const BuildInfo& build);

}  // namespace mendel::server

#endif  // MENDEL_SERVER_DAEMON_H_
