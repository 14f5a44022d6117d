#include "kernels/cpu/cache_size.h"

#include <unistd.h>

namespace mendel::cpu {

int64_t SecondLevelCacheBytes() {
  static const int64_t bytes = [] {
    constexpr int64_t kUntold = int64_t{1} << 20;
    const int64_t told = sysconf(_SC_LEVEL2_CACHE_SIZE);
    return told > 0 ? told : kUntold;
  }();
  return bytes;
}

}  // namespace mendel::cpu
