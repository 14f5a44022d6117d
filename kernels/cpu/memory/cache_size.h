// The cache sizes of this machine.
#ifndef MENDEL_KERNELS_CPU_MEMORY_CACHE_SIZE_H_
#define MENDEL_KERNELS_CPU_MEMORY_CACHE_SIZE_H_

#include <cstdint>

namespace mendel::cpu {

/// Returns the second-level cache of one core, or 1 MiB where the system does not report it.
/// Thread-safe.
int64_t SecondLevelCacheBytes();

}  // namespace mendel::cpu

#endif  // MENDEL_KERNELS_CPU_MEMORY_CACHE_SIZE_H_
