#include "client/service/retry.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <thread>
#include <utility>

#include "base/status.h"

namespace mendel {

Retrier::Retrier(const RetryPolicy& policy, uint64_t seed, Sleep sleep, Report report)
    : policy_(policy), rng_(seed), sleep_(std::move(sleep)), report_(std::move(report)) {
  if (!sleep_)
    sleep_ = [](double seconds) {
      std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
    };
}

bool Retrier::Again(const CallStatus& result) {
  const bool full = absl::IsResourceExhausted(result.status) && result.retry_after.has_value();
  if (!full && !absl::IsUnavailable(result.status)) return false;
  const double cap = std::min(policy_.initial_seconds * std::pow(policy_.multiplier, failures_),
                              policy_.longest_seconds);
  const double wait = rng_.Unit() * cap + std::max(0.0, result.retry_after.value_or(0));
  if (waited_ + wait > policy_.give_up_seconds) return false;
  ++failures_;
  // A refused connection costs no time by itself: without a floor, draws near zero would hammer the
  // server.
  waited_ += std::max(wait, 0.01);
  char text[32];
  std::snprintf(text, sizeof(text), "%.1f s", wait);
  if (report_)
    report_(Cat(std::string(result.status.message()), "; trying again in ", std::string(text)));
  sleep_(std::max(wait, 0.01));
  return true;
}

void Retrier::Progress() {
  failures_ = 0;
  waited_ = 0;
}

}  // namespace mendel
