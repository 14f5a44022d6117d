// The fake order says which work precedes which, by vector clocks of streams and events. It finds
// the accesses that nothing orders.
#ifndef MENDEL_KERNELS_CUDA_TESTING_FAKE_FAKE_ORDER_H_
#define MENDEL_KERNELS_CUDA_TESTING_FAKE_FAKE_ORDER_H_

#include <cstdint>
#include <map>

#include "kernels/cuda/driver_table/driver.h"

namespace mendel::cuda {

/// The fake driver does all work at once. A device may reorder the work of two streams, unless
/// events, waits or the default stream order it. The granules are allocations: two streams that
/// access one, one of them writing, must be ordered.
class FakeOrder {
 public:
  /// Steps of each stream that are known to have ended; the null stream is the default one.
  using Clock = std::map<DriverStream*, int64_t>;

  void AddStream(DriverStream* stream, bool waits_for_default);
  void RemoveStream(DriverStream* stream);
  /// Begins the next piece of work on the stream. It comes after the stream's earlier work, all
  /// work that the host waited for and, if the default stream is involved, that stream's.
  void Begin(DriverStream* stream);
  void Record(DriverEvent* event, DriverStream* stream);
  void Wait(DriverStream* stream, DriverEvent* event);
  void HostWaits(DriverStream* stream);
  void HostWaits(DriverEvent* event);
  void HostWaitsForAll();
  void Forget(DriverEvent* event) { events_.erase(event); }

  /// Adds an access by the work on `stream` that began last. False if an access of another stream
  /// is not ordered with it.
  bool Access(uint64_t allocation, DriverStream* stream, bool writes);
  void Forget(uint64_t allocation) { accesses_.erase(allocation); }

 private:
  struct Stream {
    bool waits_for_default = true;
    Clock clock;
  };
  struct Accesses {
    Clock reads, writes;  // the last step of each stream
  };
  std::map<DriverStream*, Stream> streams_ = {{nullptr, {}}};
  std::map<DriverStream*, int64_t> steps_;  // never reset: a handle may come again
  std::map<DriverEvent*, Clock> events_;
  Clock host_;
  std::map<uint64_t, Accesses> accesses_;
};

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_TESTING_FAKE_FAKE_ORDER_H_
