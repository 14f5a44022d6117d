// mendeld: the stores, the runner, the gRPC server, the metrics endpoint and the web page in one
// object, from start to drained.
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

/// Values of the build-info metric.
struct BuildInfo {
  std::string version;
  std::string commit;
};

class RpcServer;

/// Call it from one thread. Its RPC server and its stores are thread-safe.
class Daemon {
 public:
  /// Opens or creates the data folder, returns jobs of a dead predecessor to the queue, and serves.
  /// `options`, `clock` and `log` outlive it.
  static absl::StatusOr<std::unique_ptr<Daemon>> Start(const ServerOptions& options,
                                                       const BuildInfo& build, const Clock& clock,
                                                       Logger& log);
  virtual ~Daemon() = default;
  /// Handles leases, retention, garbage and changed auth files; called once a second.
  virtual void Tick() = 0;
  /// Reads the auth file now (certificates are watched anyway).
  virtual void Reload() = 0;
  /// Sets health to NOT_SERVING, ends watches and takes no more jobs; running ones go on.
  virtual void BeginDrain() = 0;
  /// True when no job runs here, after BeginDrain.
  virtual bool JobsFinished() const = 0;
  /// Sets health to NOT_SERVING, ends watches and returns running jobs to the queue. Returns when
  /// all data is safe or the time is over.
  virtual void Drain() = 0;
  virtual RpcServer& rpc() = 0;
  virtual int metrics_port() const = 0;
  /// Port of the web page; 0: there is none.
  virtual int page_port() const = 0;
};

/// Checks all that can be checked without serving: values, certificates, the auth file, the data
/// folder. The work of `--check-config`.
absl::Status CheckConfig(const ServerOptions& options);

/// Serves until SIGTERM or SIGINT, then drains. SIGHUP reloads. Handles signals of the process.
absl::Status Serve(const ServerOptions& options, const BuildInfo& build);

}  // namespace mendel::server

#endif  // MENDEL_SERVER_DAEMON_H_
