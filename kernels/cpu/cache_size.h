// How large this machine's caches are.
#ifndef MENDEL_KERNELS_CPU_CACHE_SIZE_H_
#define MENDEL_KERNELS_CPU_CACHE_SIZE_H_

#include <cstdint>

namespace mendel::cpu {

/// Of one core; 1 MiB where the system does not tell. Thread-safe.
int64_t SecondLevelCacheBytes();

}  // namespace mendel::cpu

#endif  // MENDEL_KERNELS_CPU_CACHE_SIZE_H_
