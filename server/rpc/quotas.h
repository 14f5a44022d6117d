// What one client may take of the server: calls a second, calls of each long kind at once, and tokens that are wrong.
#ifndef MENDEL_SERVER_RPC_QUOTAS_H_
#define MENDEL_SERVER_RPC_QUOTAS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
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

/// Tokens that nobody has, by the address that sent them: so many a minute (they come back steadily), then every token of that
/// address is refused, so that guessing tells nothing. Callers whose tokens were good from there before go on. Thread-safe.
class FailedLogins {
 public:
  /// `full` is called when an address has used its last.
  FailedLogins(int64_t per_minute, const Clock& clock, std::function<void(const std::string& address)> full);
  /// What came of a token: the caller's name, or "" when it is nobody's. ResourceExhausted with RetryInfo when it does not count.
  absl::Status Note(const std::string& address, const std::string& caller);

 private:
  struct Bucket {
    double left = 0;
    int64_t at_micros = 0;
  };
  Bucket& BucketOf(const std::string& address);

  const double per_minute_;
  const Clock& clock_;
  const std::function<void(const std::string& address)> full_;
  std::mutex mutex_;
  std::map<std::string, Bucket> buckets_;
  std::set<std::pair<std::string, std::string>> known_;  ///< address and caller
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
