// Packed weights that several executables contain are stored once: a search compiles the same
// layers many times.
#ifndef MENDEL_KERNELS_CPU_MEMORY_SHARED_BYTES_H_
#define MENDEL_KERNELS_CPU_MEMORY_SHARED_BYTES_H_

#include <cstddef>
#include <cstdint>
#include <memory>

namespace mendel::cpu {

/// Returns `fresh`, which has `size` bytes, or equal bytes that some executable still owns. The
/// result must not be modified. Thread-safe.
std::shared_ptr<const std::byte> Share(std::shared_ptr<const std::byte> fresh, int64_t size);

}  // namespace mendel::cpu

#endif  // MENDEL_KERNELS_CPU_MEMORY_SHARED_BYTES_H_
