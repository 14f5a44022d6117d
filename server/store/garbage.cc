#include "server/store/garbage.h"

#include <algorithm>
#include <set>

#include "base/status.h"

namespace mendel::server {
namespace {

/// However full the store is: a blob that was promised to a client stays this long.
constexpr int64_t kLeastMicros = int64_t{3600} * 1'000'000;

absl::StatusOr<int64_t> CountEndedBefore(JobStore& jobs, int64_t wall_micros) {
  const JobFilter ended = {
      .states = {v1::JOB_STATE_SUCCEEDED, v1::JOB_STATE_FAILED, v1::JOB_STATE_CANCELLED},
      .client = ""};
  int64_t count = 0;
  std::string token;
  do {
    MENDEL_ASSIGN_OR_RETURN(const Page<StoredJob> page, jobs.ListJobs(ended, 1000, token));
    for (const StoredJob& job : page.items) {
      const auto& end = job.job.end_time();
      count += end.seconds() * 1'000'000 + end.nanos() / 1000 < wall_micros ? 1 : 0;
    }
    token = page.next_token;
  } while (!token.empty());
  return count;
}

absl::StatusOr<int64_t> Sweep(BlobStore& blobs, const std::set<std::string>& referenced,
                              int64_t wall_micros, bool dry_run) {
  if (!dry_run) return blobs.Sweep(referenced, wall_micros);
  MENDEL_ASSIGN_OR_RETURN(const std::vector<BlobEntry> entries, blobs.List());
  int64_t bytes = 0;
  for (const BlobEntry& entry : entries) {
    if (entry.touched_micros < wall_micros && !referenced.contains(BlobKey(entry.blob)))
      bytes += entry.blob.size;
  }
  return bytes;
}

}  // namespace

absl::StatusOr<GarbageReport> CollectGarbage(JobStore& jobs, BlobStore& blobs,
                                             const GarbagePolicy& policy, int64_t now_micros) {
  GarbageReport report;
  MENDEL_ASSIGN_OR_RETURN(report.bytes_before, blobs.TotalBytes());
  const int64_t jobs_before = now_micros - policy.retain_jobs_micros;
  MENDEL_ASSIGN_OR_RETURN(report.jobs, policy.dry_run ? CountEndedBefore(jobs, jobs_before)
                                                      : jobs.DeleteEndedBefore(jobs_before));
  // After the jobs: their bundles are then named no more.
  MENDEL_ASSIGN_OR_RETURN(const std::vector<std::string> names, jobs.ReferencedBlobs());
  const std::set<std::string> referenced(names.begin(), names.end());
  MENDEL_ASSIGN_OR_RETURN(
      report.bytes,
      Sweep(blobs, referenced, now_micros - policy.retain_blobs_micros, policy.dry_run));
  if (!policy.dry_run) {
    MENDEL_ASSIGN_OR_RETURN(const std::vector<BlobEntry> left, blobs.List());
    std::set<std::string> stored;
    for (const BlobEntry& entry : left) stored.insert(BlobKey(entry.blob));
    MENDEL_RETURN_IF_ERROR(
        jobs.ForgetUploadsBefore(now_micros - policy.retain_blobs_micros, stored));
  }
  const bool full =
      policy.target_bytes > 0 && report.bytes_before - report.bytes > policy.target_bytes;
  if (!full || policy.retain_blobs_micros <= kLeastMicros) return report;
  MENDEL_ASSIGN_OR_RETURN(const int64_t more,
                          Sweep(blobs, referenced, now_micros - kLeastMicros, policy.dry_run));
  // A dry run counts the older ones again.
  report.bytes = policy.dry_run ? more : report.bytes + more;
  return report;
}

}  // namespace mendel::server
