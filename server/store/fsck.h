// The consistency of a data folder: the job store, the blobs, and whether one has what the other
// names.
#ifndef MENDEL_SERVER_STORE_FSCK_H_
#define MENDEL_SERVER_STORE_FSCK_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/store/blob_store.h"
#include "server/store/job_store.h"

namespace mendel::server {

/// Name of the job store's file in a data folder.
inline constexpr char kJobStoreFile[] = "mendel.sqlite";

struct FsckReport {
  std::vector<std::string> violations;  ///< one sentence each; empty: all is well
  int64_t jobs = 0;
  int64_t models = 0;
  int64_t plans = 0;
  int64_t blobs = 0;
  int64_t bytes = 0;         ///< bytes of blobs
  int64_t unreferenced = 0;  ///< blobs that nothing names: garbage, or uploads that no model has
                             ///< taken yet. No violation.
};

/// Reads everything, every blob's bytes included.
absl::StatusOr<FsckReport> Fsck(JobStore& jobs, BlobStore& blobs);

}  // namespace mendel::server

#endif  // MENDEL_SERVER_STORE_FSCK_H_
