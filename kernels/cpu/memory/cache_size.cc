#include "kernels/cpu/memory/cache_size.h"

#include <unistd.h>

namespace mendel::cpu {

int64_t SecondLevelCacheBytes() {
  static const int64_t bytes = [] {
    constexpr int64_t kUnreported = int64_t{1} << 20;
    const int64_t reported = sysconf(_SC_LEVEL2_CACHE_SIZE);
    return reported > 0 ? reported : kUnreported;
  }();
  return bytes;
}

}  // namespace mendel::cpu
