// Exchange of measurements between jobs that do not trust each other.
//
// A worker executes strangers' models, so it never writes to the cache that all jobs share: it
// gets a copy and writes there. When its job ends, the server reads the copy as hostile data. It
// checks the entries' hashes, sizes and kinds, executes no SQL of the file, and adds new
// entries. Certificates and results of the numeric gate are never taken over. A false
// measurement can only make another job's plan slower, or fail its certification; no plan
// becomes wrong.
#ifndef MENDEL_SERVER_JOBS_PROFILE_EXCHANGE_H_
#define MENDEL_SERVER_JOBS_PROFILE_EXCHANGE_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace mendel::server {

struct ExchangeLimits {
  int64_t value_bytes = 4 << 20;      ///< of one entry
  int64_t total_bytes = 256 << 20;    ///< taken from one job
  int64_t total_entries = 1'000'000;  ///< taken from one job
};

/// The file of a project's measurements, given that of "default". Projects share none: a search
/// that goes fast would show that another project has searched the same model.
std::string ProfilesOf(const std::string& shared, const std::string& project);

/// Copies the current shared cache to `copy`; does nothing if the cache does not exist yet or
/// `copy` already does.
absl::Status CopyProfiles(const std::string& shared, const std::string& copy);

/// Adds entries of `copy` that `shared` lacks; returns their number. A damaged copy gives its
/// readable entries, or an error. One caller at a time per process.
absl::StatusOr<int64_t> MergeProfiles(const std::string& copy, const std::string& shared,
                                      const ExchangeLimits& limits = {});

}  // namespace mendel::server

#endif  // MENDEL_SERVER_JOBS_PROFILE_EXCHANGE_H_
