// A job store that counts its workers' writes for the metrics: seconds per phase, started jobs and
// the verifier's answers.
#ifndef MENDEL_SERVER_OBSERVED_STORE_H_
#define MENDEL_SERVER_OBSERVED_STORE_H_

#include <memory>

#include "server/clock.h"
#include "server/metrics.h"
#include "server/store/job_store.h"

namespace mendel::server {

/// Forwards every call to `jobs`. Clock and metrics outlive it.
std::unique_ptr<JobStore> ObserveStore(std::unique_ptr<JobStore> jobs, const Clock& clock,
                                       Metrics& metrics);

}  // namespace mendel::server

#endif  // MENDEL_SERVER_OBSERVED_STORE_H_
