// Readiness of a server: whether the database answers and the disk has room for uploads.
#ifndef MENDEL_SERVER_READINESS_H_
#define MENDEL_SERVER_READINESS_H_

#include <string>

#include "absl/status/status.h"
#include "server/store/blob_store.h"
#include "server/store/job_store.h"

namespace mendel::server {

struct Readiness {
  absl::Status jobs;     ///< of the database; calls need it
  absl::Status uploads;  ///< of the disk; uploads need it, other calls go on
};

/// Asks both stores; may wait for a database that is cut off.
Readiness CheckReadiness(JobStore& jobs, BlobStore& blobs);

/// One line per check, "jobs: ready" or "jobs: not ready (UNAVAILABLE)". A probe's reader is not
/// known, and messages may name hosts and paths: the text contains the code only.
std::string ReadinessText(const Readiness& readiness);

}  // namespace mendel::server

#endif  // MENDEL_SERVER_READINESS_H_
