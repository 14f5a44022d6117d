// How jobs share measurements without trusting each other.
//
// A worker executes what strangers send, so it never writes to the cache that all jobs share: it gets a copy and writes there.
// When its job ends, the server reads the copy as hostile data (its entries' hashes, sizes and kinds are checked; nothing that
// SQL could hide in the file is executed) and adds what is new. Certificates and results of the numeric gate are never taken
// over: at worst a false measurement makes another job's plan of the same subprogram slower, or makes that job fail its own
// certification; no plan becomes wrong.
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

/// Copies the shared cache to `copy` as it is at this moment; nothing where it does not exist yet or `copy` does already.
absl::Status CopyProfiles(const std::string& shared, const std::string& copy);

/// Adds entries of `copy` that `shared` lacks; returns how many. A damaged copy gives what is readable, or an error. One caller at
/// a time a process.
absl::StatusOr<int64_t> MergeProfiles(const std::string& copy, const std::string& shared, const ExchangeLimits& limits = {});

}  // namespace mendel::server

#endif  // MENDEL_SERVER_JOBS_PROFILE_EXCHANGE_H_
