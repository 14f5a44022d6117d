// The environment of every handler: stores, clocks and limits.
#ifndef MENDEL_SERVER_RPC_ENVIRONMENT_H_
#define MENDEL_SERVER_RPC_ENVIRONMENT_H_

#include <atomic>
#include <functional>
#include <string>

#include "server/clock.h"
#include "server/jobs/job_runner.h"
#include "server/log.h"
#include "server/metrics.h"
#include "server/options.h"
#include "server/rpc/authenticator.h"
#include "server/rpc/change_hub.h"
#include "server/rpc/library_calls.h"
#include "server/rpc/quotas.h"
#include "server/rpc/thread_pool.h"
#include "server/store/blob_store.h"
#include "server/store/job_store.h"
#include "server/tracer.h"

namespace mendel::server {

/// One object per server. Everything in it is thread-safe and outlives the calls.
struct Environment {
  const ServerOptions& options;
  JobStore& jobs;
  BlobStore& blobs;
  const Clock& clock;
  Logger& log;
  Metrics& metrics;
  Authenticator& authenticator;
  Tracer& tracer;
  /// Key of a search's stored plan (server/jobs/work_key.h); empty: no plan is looked
  /// up.
  std::function<std::string(const v1::JobSpec&)> work_key;

  RateLimits rates{options.max_rpcs_per_second_per_client, clock};
  FailedLogins failed_logins{
      options.max_failed_logins_per_minute_per_address, clock, [this](const std::string& address) {
        log.Log(LogLevel::kWarning, "too many failed logins", {{"address", address}});
      }};
  Permits transfers{"transfers", options.max_transfers, options.max_transfers_per_client};
  Permits watchers{"calls that wait for jobs", options.max_watchers,
                   options.max_watchers_per_client};
  ThreadPool pool{static_cast<int>(options.rpc_threads),
                  static_cast<size_t>(options.max_queued_rpcs)};
  ChangeHub hub{jobs, clock};
  LibraryCalls library_calls = {};
  std::atomic<bool> draining = false;
};

}  // namespace mendel::server

#endif  // MENDEL_SERVER_RPC_ENVIRONMENT_H_
