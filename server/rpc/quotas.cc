#include "server/rpc/quotas.h"

#include <algorithm>
#include <utility>

#include "base/status.h"
#include "server/rpc/errors.h"

namespace mendel::server {
namespace {

constexpr size_t kMaxBuckets = 10'000;
constexpr double kMinuteMicros = 60e6;

}  // namespace

RateLimits::RateLimits(int64_t per_second, const Clock& clock)
    : per_second_(static_cast<double>(per_second)), clock_(clock) {}

absl::Status RateLimits::Take(const std::string& client) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const int64_t now = clock_.SteadyMicros();
  // Names come from tokens and certificates: few. Should they be many, forgetting them costs
  // nothing but a moment's strictness.
  if (buckets_.size() > kMaxBuckets) buckets_.clear();
  Bucket& bucket = buckets_.try_emplace(client, Bucket{per_second_, now}).first->second;
  bucket.tokens =
      std::min(per_second_,
               bucket.tokens + per_second_ * static_cast<double>(now - bucket.at_micros) * 1e-6);
  bucket.at_micros = now;
  if (bucket.tokens < 1) {
    return WithReason(WithRetry(absl::ResourceExhaustedError("too many calls a second"),
                                (1 - bucket.tokens) / per_second_),
                      "CALL_RATE");
  }
  bucket.tokens -= 1;
  return absl::OkStatus();
}

FailedLogins::FailedLogins(int64_t per_minute, const Clock& clock,
                           std::function<void(const std::string& address)> full)
    : per_minute_(static_cast<double>(per_minute)), clock_(clock), full_(std::move(full)) {}

FailedLogins::Bucket& FailedLogins::BucketOf(const std::string& address) {
  const int64_t now = clock_.SteadyMicros();
  Bucket& bucket = buckets_.try_emplace(address, Bucket{per_minute_, now}).first->second;
  bucket.left = std::min(
      per_minute_,
      bucket.left + per_minute_ * static_cast<double>(now - bucket.at_micros) / kMinuteMicros);
  bucket.at_micros = now;
  return bucket;
}

absl::Status FailedLogins::Note(const std::string& address, const std::string& caller) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!caller.empty() && known_.count({address, caller}) > 0) return absl::OkStatus();
  // Addresses are many to somebody who has a large network; then forgetting lets him try again, as
  // his next address would.
  if (buckets_.size() > kMaxBuckets) buckets_.clear();
  if (known_.size() > kMaxBuckets) known_.clear();
  Bucket& bucket = BucketOf(address);
  if (bucket.left < 1) {
    const double seconds = (1 - bucket.left) / per_minute_ * 60;
    return WithReason(
        WithRetry(absl::ResourceExhaustedError("too many unknown tokens came from this address"),
                  seconds),
        "FAILED_LOGINS");
  }
  if (!caller.empty()) {
    known_.emplace(address, caller);
    return absl::OkStatus();
  }
  bucket.left -= 1;
  if (bucket.left < 1) full_(address);
  return absl::OkStatus();
}

Pace::Pace(int64_t bytes_per_second, int64_t window_seconds)
    : bytes_per_second_(bytes_per_second), window_micros_(window_seconds * 1'000'000) {}

bool Pace::Moved(int64_t bytes, int64_t waited_micros) {
  bytes_ += bytes;
  waited_micros_ += waited_micros;
  if (waited_micros_ < window_micros_) return true;
  const double demanded =
      static_cast<double>(bytes_per_second_) * static_cast<double>(waited_micros_) * 1e-6;
  const bool fast = static_cast<double>(bytes_) >= demanded;
  bytes_ = 0;
  waited_micros_ = 0;
  return fast;
}

Permits::Permits(std::string what, int64_t total, int64_t per_client)
    : what_(std::move(what)), total_(total), per_client_(per_client) {}

absl::StatusOr<std::unique_ptr<Permits::Permit>> Permits::Take(const std::string& client) {
  const std::lock_guard<std::mutex> lock(mutex_);
  int64_t& mine = by_client_[client];
  const bool all = taken_ >= total_ && mine >= kGranted;
  if (all || mine >= per_client_) {
    const absl::Status status = absl::ResourceExhaustedError(Cat(
        all ? total_ : per_client_, " ", what_, " are under way", all ? "" : " for this client"));
    if (mine == 0) by_client_.erase(client);
    return WithReason(WithRetry(status, 1), "TOO_MANY_AT_ONCE");
  }
  ++taken_;
  ++mine;
  return std::make_unique<Permit>(*this, client);
}

int64_t Permits::taken() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return taken_;
}

void Permits::GiveBack(const std::string& client) {
  const std::lock_guard<std::mutex> lock(mutex_);
  --taken_;
  if (--by_client_[client] == 0) by_client_.erase(client);
}

}  // namespace mendel::server
