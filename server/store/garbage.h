// Retention: which jobs and blobs go, and when.
#ifndef MENDEL_SERVER_STORE_GARBAGE_H_
#define MENDEL_SERVER_STORE_GARBAGE_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "server/store/blob_store.h"
#include "server/store/job_store.h"

namespace mendel::server {

struct GarbagePolicy {
  int64_t retain_jobs_micros = 0;  ///< time for which ended jobs are kept
  /// Time for which blobs without a reference and unfinished uploads are kept.
  int64_t retain_blobs_micros = 0;
  /// Above this total, blobs that nothing names stay an hour at most; 0: no such limit.
  /// Blobs that something names always stay.
  int64_t target_bytes = 0;
  bool dry_run = false;  ///< only reports what would go
};

struct GarbageReport {
  int64_t jobs = 0;  ///< deleted (or, in a dry run, to be deleted)
  /// Bytes that were freed. A dry run does not count unfinished uploads and the bundles of deleted
  /// jobs.
  int64_t bytes = 0;
  int64_t bytes_before = 0;  ///< of blobs and uploads
};

/// Deletes ended jobs that are old enough, then blobs without a reference. Servers may run at the
/// same time (BlobStore::Touch).
absl::StatusOr<GarbageReport> CollectGarbage(JobStore& jobs, BlobStore& blobs,
                                             const GarbagePolicy& policy, int64_t now_micros);

}  // namespace mendel::server

#endif  // MENDEL_SERVER_STORE_GARBAGE_H_
