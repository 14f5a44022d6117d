#include "server/rpc/quotas.h"

#include <algorithm>
#include <utility>

#include "base/status.h"
#include "server/rpc/errors.h"

namespace mendel::server {
namespace {

constexpr size_t kMaxBuckets = 10'000;

}  // namespace

RateLimits::RateLimits(int64_t per_second, const Clock& clock) : per_second_(static_cast<double>(per_second)), clock_(clock) {}

absl::Status RateLimits::Take(const std::string& client) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const int64_t now = clock_.SteadyMicros();
  // Names come from tokens and certificates: few. Should they be many, forgetting them costs nothing but a moment's strictness.
  if (buckets_.size() > kMaxBuckets) buckets_.clear();
  Bucket& bucket = buckets_.try_emplace(client, Bucket{per_second_, now}).first->second;
  bucket.tokens = std::min(per_second_, bucket.tokens + per_second_ * static_cast<double>(now - bucket.at_micros) * 1e-6);
  bucket.at_micros = now;
  if (bucket.tokens < 1) {
    return WithReason(WithRetry(absl::ResourceExhaustedError("too many calls a second"), (1 - bucket.tokens) / per_second_),
                      "CALL_RATE");
  }
  bucket.tokens -= 1;
  return absl::OkStatus();
}

Places::Places(std::string what, int64_t total, int64_t per_client)
    : what_(std::move(what)), total_(total), per_client_(per_client) {}

absl::StatusOr<std::unique_ptr<Places::Place>> Places::Take(const std::string& client) {
  const std::lock_guard<std::mutex> lock(mutex_);
  int64_t& mine = by_client_[client];
  if (taken_ >= total_ || mine >= per_client_) {
    const bool all = taken_ >= total_;
    const absl::Status status =
        absl::ResourceExhaustedError(Cat(all ? total_ : per_client_, " ", what_, " are under way", all ? "" : " for this client"));
    if (mine == 0) by_client_.erase(client);
    return WithReason(WithRetry(status, 1), "TOO_MANY_AT_ONCE");
  }
  ++taken_;
  ++mine;
  return std::make_unique<Place>(*this, client);
}

int64_t Places::taken() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return taken_;
}

void Places::GiveBack(const std::string& client) {
  const std::lock_guard<std::mutex> lock(mutex_);
  --taken_;
  if (--by_client_[client] == 0) by_client_.erase(client);
}

}  // namespace mendel::server
