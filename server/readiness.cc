#include "server/readiness.h"

#include "base/status.h"

namespace mendel::server {
namespace {

std::string ReadyText(const absl::Status& status) {
  if (status.ok()) return "ready";
  return Cat("not ready (", absl::StatusCodeToString(status.code()), ")");
}

}  // namespace

Readiness CheckReadiness(JobStore& jobs, BlobStore& blobs) {
  return {jobs.CountJobs().status(), blobs.CheckRoom()};
}

std::string ReadinessText(const Readiness& readiness) {
  return Cat("jobs: ", ReadyText(readiness.jobs), "\nuploads: ", ReadyText(readiness.uploads),
             "\n");
}

}  // namespace mendel::server
