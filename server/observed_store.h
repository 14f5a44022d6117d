// What the workers of this server tell the store, counted for the metrics on the way: seconds a phase, jobs begun and the
// judge's answers.
#ifndef MENDEL_SERVER_OBSERVED_STORE_H_
#define MENDEL_SERVER_OBSERVED_STORE_H_

#include <memory>

#include "server/clock.h"
#include "server/metrics.h"
#include "server/store/job_store.h"

namespace mendel::server {

/// Passes everything on to `jobs`. Clock and metrics outlive it.
std::unique_ptr<JobStore> ObserveStore(std::unique_ptr<JobStore> jobs, const Clock& clock, Metrics& metrics);

}  // namespace mendel::server

#endif  // MENDEL_SERVER_OBSERVED_STORE_H_
