#include "server/store/change_signal.h"

#include <algorithm>
#include <chrono>

namespace mendel::server {

void ChangeSignal::Notify() {
  const std::scoped_lock lock(mutex_);
  ++number_;
  changed_.notify_all();
}

uint64_t ChangeSignal::Wait(uint64_t seen, int64_t timeout_micros) {
  using std::chrono::steady_clock;
  constexpr auto kPollPeriod = std::chrono::milliseconds(200);
  // A day is as good as for ever, and cannot overflow.
  const auto end = steady_clock::now() + std::chrono::microseconds(std::clamp<int64_t>(
                                             timeout_micros, 0, 86'400'000'000));
  std::unique_lock lock(mutex_);
  while (number_ == seen) {
    const auto now = steady_clock::now();
    if (now >= end) break;
    // One waiter polls for all, the others sleep until it finds something or leaves.
    const bool mine = poll_ != nullptr && !polling_;
    if (!mine) {
      changed_.wait_until(lock, std::min(end, now + 2 * kPollPeriod));
      continue;
    }
    polling_ = true;
    changed_.wait_until(lock, std::min(end, now + kPollPeriod));
    if (number_ == seen) {
      lock.unlock();
      const bool found = poll_();
      lock.lock();
      if (found) {
        ++number_;
        changed_.notify_all();
      }
    }
    polling_ = false;
  }
  return number_;
}

}  // namespace mendel::server
