// Time as the server sees it, injected so that tests can make it jump.
#ifndef MENDEL_SERVER_CLOCK_H_
#define MENDEL_SERVER_CLOCK_H_

#include <cstdint>

namespace mendel::server {

/// Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;
  /// Microseconds since 1970, for people and for what is compared between machines (leases). May
  /// jump.
  virtual int64_t WallMicros() const = 0;
  /// Microseconds since some start, never going back: for timeouts within this process.
  virtual int64_t SteadyMicros() const = 0;
};

/// The system's. Lives for ever.
const Clock& SystemClock();

}  // namespace mendel::server

#endif  // MENDEL_SERVER_CLOCK_H_
