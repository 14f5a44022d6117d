// A job store that reports its workers' writes. The log gets a line for every start and end of an
// attempt; the metrics get seconds per phase, waiting times and the verifier's answers.
#ifndef MENDEL_SERVER_OBSERVED_STORE_H_
#define MENDEL_SERVER_OBSERVED_STORE_H_

#include <memory>

#include "server/clock.h"
#include "server/log.h"
#include "server/metrics.h"
#include "server/store/job_store.h"

namespace mendel::server {

/// Forwards every call to `jobs`. Clock, metrics and log outlive it.
std::unique_ptr<JobStore> ObserveStore(std::unique_ptr<JobStore> jobs, const Clock& clock,
                                       Metrics& metrics, Logger& log);

}  // namespace mendel::server

#endif  // MENDEL_SERVER_OBSERVED_STORE_H_
