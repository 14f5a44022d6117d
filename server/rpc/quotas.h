// Quotas of one client: calls a second, calls of each long kind at once, and wrong
// tokens.
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

/// Rate limits by permits that return at a steady rate, at most those of one second. Thread-safe.
class RateLimits {
 public:
  RateLimits(int64_t per_second, const Clock& clock);
  /// ResourceExhausted with RetryInfo when the client calls too often.
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

/// Unknown tokens, by the address that sent them. An address may send a number of them per minute;
/// then all its tokens are refused, so that guessing yields nothing. Callers whose tokens were
/// valid from there before are still admitted. Thread-safe.
class FailedLogins {
 public:
  /// `full` is called when an address has used its last attempt.
  FailedLogins(int64_t per_minute, const Clock& clock,
               std::function<void(const std::string& address)> full);
  /// Records a token's result: the caller's name, or "" for an unknown token. ResourceExhausted
  /// with RetryInfo when the token is refused.
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

/// The pace of one transfer, by the time that the server waits for its client. Not thread-safe.
class Pace {
 public:
  Pace(int64_t bytes_per_second, int64_t window_seconds);
  /// Bytes that moved after a wait. False: over a window of waiting the client was slower than
  /// demanded.
  bool Moved(int64_t bytes, int64_t waited_micros);

 private:
  const int64_t bytes_per_second_;
  const int64_t window_micros_;
  int64_t bytes_ = 0;
  int64_t waited_micros_ = 0;
};

/// Permits for long calls, in total and per client. The first two of every client are granted
/// beyond the total: however many others hold, nobody is shut out. Thread-safe; outlives its
/// permits.
class Permits {
 public:
  /// The destructor returns the permit.
  class Permit {
   public:
    Permit(Permits& permits, std::string client) : permits_(permits), client_(std::move(client)) {}
    ~Permit() { permits_.GiveBack(client_); }
    Permit(const Permit&) = delete;
    Permit& operator=(const Permit&) = delete;

   private:
    Permits& permits_;
    const std::string client_;
  };
  /// `what` names the calls in messages: "transfers", "watchers".
  Permits(std::string what, int64_t total, int64_t per_client);
  /// ResourceExhausted with RetryInfo when none is free.
  absl::StatusOr<std::unique_ptr<Permit>> Take(const std::string& client);
  int64_t taken() const;
  static constexpr int64_t kGranted = 2;

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
