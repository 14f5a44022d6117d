// Memory for the constants of a program. The system clears one huge page several times faster than
// many small pages. Clearing would otherwise dominate the loading of networks of small layers.
#ifndef MENDEL_KERNELS_CPU_MEMORY_CONSTANT_ARENA_H_
#define MENDEL_KERNELS_CPU_MEMORY_CONSTANT_ARENA_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "kernels/cpu/program.h"

namespace mendel::cpu {

/// Small constants lie next to each other in chunks of huge pages. A chunk lives as long as one of
/// its constants. Large constants have memory of their own, and so have the first small ones: a
/// small program does not need a huge page. Not thread-safe.
class ConstantArena {
 public:
  /// Returns zeroed bytes on a 64-byte boundary. They are reserved while the result or a copy of it
  /// is kept.
  std::shared_ptr<std::byte> Take(int64_t bytes);
  /// Gives back the memory of the last Take, so that the next one may get it. The caller keeps no
  /// copy.
  void GiveBack(std::shared_ptr<std::byte> last, int64_t bytes);

 private:
  std::shared_ptr<AlignedBytes> chunk_;
  int64_t used_ = 0;   ///< bytes of the chunk
  int64_t apart_ = 0;  ///< bytes of small constants with memory of their own
};

}  // namespace mendel::cpu

#endif  // MENDEL_KERNELS_CPU_MEMORY_CONSTANT_ARENA_H_
