// When a call is tried again, and after how long: gRPC's rules (proposal A6) with the server's own
// wish.
//
// Tried again: UNAVAILABLE (the request may or may not have arrived: every request here can be
// repeated without harm), and RESOURCE_EXHAUSTED when the server said by RetryInfo when to come
// back. The wait before attempt n is drawn from [0, min(initial * multiplier^(n-1), longest)], so
// that clients do not come back all at once; RetryInfo is its lower bound.
#ifndef MENDEL_CLIENT_SERVICE_RETRY_H_
#define MENDEL_CLIENT_SERVICE_RETRY_H_

#include <functional>
#include <string>

#include "base/random.h"
#include "client/service/channel.h"

namespace mendel {

struct RetryPolicy {
  double initial_seconds = 0.25;
  double multiplier = 2;
  double longest_seconds = 8;
  /// Waits without progress in between may sum up to this; 0: no second attempt.
  double give_up_seconds = 60;
};

/// State of one operation's attempts. Not thread-safe.
class Retrier {
 public:
  using Sleep = std::function<void(double seconds)>;
  using Report = std::function<void(const std::string& message)>;
  /// `sleep` empty: the thread sleeps. `report` may be empty.
  Retrier(const RetryPolicy& policy, uint64_t seed, Sleep sleep, Report report);

  /// Waits and returns true when the call is to be made again.
  bool Again(const CallStatus& result);
  /// Bytes or events arrived: the next failure is a first one.
  void Progress();

 private:
  RetryPolicy policy_;
  Rng rng_;
  Sleep sleep_;
  Report report_;
  int failures_ = 0;
  double waited_ = 0;
};

}  // namespace mendel

#endif  // MENDEL_CLIENT_SERVICE_RETRY_H_
