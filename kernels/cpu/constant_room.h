// Memory for the constants of a program. The system clears a huge page several times faster than as many small ones, which most of
// loading a network of small layers would otherwise be spent on.
#ifndef MENDEL_KERNELS_CPU_CONSTANT_ROOM_H_
#define MENDEL_KERNELS_CPU_CONSTANT_ROOM_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "kernels/cpu/program.h"

namespace mendel::cpu {

/// Small constants lie next to each other in chunks of huge pages, each of which lives as long as one of them. Large ones have
/// memory of their own, and so have the first small ones: a program of few has no use for a huge page. Not thread-safe.
class ConstantRoom {
 public:
  /// Zeroed bytes on a 64-byte boundary, nobody else's while the result or a copy of it is kept.
  std::shared_ptr<std::byte> Take(int64_t bytes);
  /// What the last Take returned is not needed: the next one may get its memory. No copy of it is kept.
  void GiveBack(std::shared_ptr<std::byte> last, int64_t bytes);

 private:
  std::shared_ptr<AlignedBytes> chunk_;
  int64_t used_ = 0;   ///< bytes of the chunk
  int64_t apart_ = 0;  ///< bytes of small constants with memory of their own
};

}  // namespace mendel::cpu

#endif  // MENDEL_KERNELS_CPU_CONSTANT_ROOM_H_
