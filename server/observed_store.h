// A job store that reports its workers' writes. The log gets a line for every start and end of an
// attempt; the metrics get seconds per phase, waiting times and the verifier's answers; the trace
// gets spans of queue, attempt and phases.
#ifndef MENDEL_SERVER_OBSERVED_STORE_H_
#define MENDEL_SERVER_OBSERVED_STORE_H_

#include <memory>

#include "server/clock.h"
#include "server/log.h"
#include "server/metrics.h"
#include "server/store/job_store.h"
#include "server/tracer.h"

namespace mendel::server {

/// The receivers of the reports.
struct Observers {
  Metrics& metrics;
  Logger& log;
  Tracer& tracer;
};

/// Forwards every call to `jobs`. Clock and observers outlive it. A claimed job's trace parent is
/// that of the attempt's span, so that its worker is below it.
std::unique_ptr<JobStore> ObserveStore(std::unique_ptr<JobStore> jobs, const Clock& clock,
                                       const Observers& observers);

}  // namespace mendel::server

#endif  // MENDEL_SERVER_OBSERVED_STORE_H_
