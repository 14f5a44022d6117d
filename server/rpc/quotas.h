// What one client may take of the server: calls a second, and calls of each long kind at once.
#ifndef MENDEL_SERVER_RPC_QUOTAS_H_
#define MENDEL_SERVER_RPC_QUOTAS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/clock.h"

namespace mendel::server {

/// Tokens that come back at a steady rate, a second's worth at most. Thread-safe.
class RateLimits {
 public:
  RateLimits(int64_t per_second, const Clock& clock);
  /// ResourceExhausted with RetryInfo when the client has asked too often.
  absl::Status Take(const std::string& client);

 private:
  struct Bucket {
    double tokens = 0;
    int64_t at_micros = 0;
  };
  const double per_second_;
  const Clock& clock_;
  std::mutex mutex_;
  std::map<std::string, Bucket> buckets_;
};

/// Places for long calls, a number in all and one a client. Thread-safe; outlives its places.
class Places {
 public:
  /// Gives its place back when it goes.
  class Place {
   public:
    Place(Places& places, std::string client) : places_(places), client_(std::move(client)) {}
    ~Place() { places_.GiveBack(client_); }
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;

   private:
    Places& places_;
    const std::string client_;
  };
  /// `what` is told to clients: "transfers", "watchers".
  Places(std::string what, int64_t total, int64_t per_client);
  /// ResourceExhausted with RetryInfo when none is free.
  absl::StatusOr<std::unique_ptr<Place>> Take(const std::string& client);
  int64_t taken() const;

 private:
  void GiveBack(const std::string& client);
  const std::string what_;
  const int64_t total_;
  const int64_t per_client_;
  mutable std::mutex mutex_;
  int64_t taken_ = 0;
  std::map<std::string, int64_t> by_client_;
};

}  // namespace mendel::server

#endif  // MENDEL_SERVER_RPC_QUOTAS_H_
