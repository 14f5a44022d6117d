// Which work comes before which: vector clocks of streams and events, and the accesses that nothing orders.
#ifndef MENDEL_KERNELS_CUDA_FAKE_FAKE_ORDER_H_
#define MENDEL_KERNELS_CUDA_FAKE_FAKE_ORDER_H_

#include <cstdint>
#include <map>

#include "kernels/cuda/driver_table/driver.h"

namespace mendel::cuda {

/// The fake driver does all work at once; a device may do what lies on two streams in any order, but for what events, waiting and
/// the default stream order. Allocations are the granules: two streams that both access one, one of them writing, must be ordered.
class FakeOrder {
 public:
  /// Steps of each stream that are known to have ended; the null stream is the default one.
  using Clock = std::map<DriverStream*, int64_t>;

  void AddStream(DriverStream* stream, bool waits_for_default);
  void RemoveStream(DriverStream* stream);
  /// The next piece of work on the stream: after the stream's earlier work, what the host waited for, and where the default stream
  /// is involved, that.
  void Begin(DriverStream* stream);
  void Record(DriverEvent* event, DriverStream* stream);
  void Wait(DriverStream* stream, DriverEvent* event);
  void HostWaits(DriverStream* stream);
  void HostWaits(DriverEvent* event);
  void HostWaitsForAll();
  void Forget(DriverEvent* event) { events_.erase(event); }

  /// An access by the work on `stream` that began last. False when another stream's is not ordered with it.
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

#endif  // MENDEL_KERNELS_CUDA_FAKE_FAKE_ORDER_H_
