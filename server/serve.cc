// The process around the daemon: signals and the tick.
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <csignal>

#include "base/deadline.h"
#include "base/status.h"
#include "server/daemon.h"
#include "server/grpc_log.h"
#include "server/rpc/rpc_server.h"

namespace mendel::server {
namespace {

volatile std::sig_atomic_t stop_requested = 0;
volatile std::sig_atomic_t reload_requested = 0;
int wake_descriptor = -1;

// Handlers, not a blocked mask: a mask would be inherited by the processes of jobs.
void OnSignal(int signal) {
  volatile std::sig_atomic_t& requested = signal == SIGHUP ? reload_requested : stop_requested;
  requested = requested + 1;
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(wake_descriptor, &one, sizeof(one));
}

void HandleSignals() {
  wake_descriptor = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  struct sigaction action {};
  action.sa_handler = &OnSignal;
  action.sa_flags = SA_RESTART;
  for (int signal : std::array{SIGTERM, SIGINT, SIGHUP}) sigaction(signal, &action, nullptr);
}

/// Waits for a signal, a second at most.
void Wait() {
  pollfd event = {wake_descriptor, POLLIN, 0};
  poll(&event, 1, 1000);
  uint64_t count = 0;
  [[maybe_unused]] const ssize_t got = read(wake_descriptor, &count, sizeof(count));
}

}  // namespace

absl::Status Serve(const ServerOptions& options, const BuildInfo& build) {
  HandleSignals();
  Logger log(ParseLogLevel(options.log_level), SystemClock(), &LogToStandardError);
  const GrpcLog grpc_log(log);
  MENDEL_ASSIGN_OR_RETURN(const std::unique_ptr<Daemon> daemon,
                          Daemon::Start(options, build, SystemClock(), log));
  const std::vector<std::string> addresses = ListenAddresses(options);
  for (size_t i = 0; i < addresses.size(); ++i) {
    log.Log(LogLevel::kInfo, "serving",
            {{"address", addresses[i]},
             {"port", int64_t{daemon->rpc().ports()[i]}},
             {"tls", options.grpc_use_ssl ? "yes" : "no"}});
  }
  if (daemon->metrics_port() != 0)
    log.Log(LogLevel::kInfo, "metrics", {{"port", int64_t{daemon->metrics_port()}}});
  if (daemon->page_port() != 0)
    log.Log(LogLevel::kInfo, "web page", {{"port", int64_t{daemon->page_port()}}});
  while (stop_requested == 0) {
    daemon->Tick();
    Wait();
    if (reload_requested != 0) {
      reload_requested = 0;
      daemon->Reload();
    }
  }
  daemon->BeginDrain();
  const Deadline finish = Deadline::After(static_cast<double>(options.finish_seconds));
  while (stop_requested == 1 && !daemon->JobsFinished() && !finish.Passed()) {
    daemon->Tick();
    Wait();
  }
  daemon->Drain();
  return absl::OkStatus();
}

}  // namespace mendel::server
