// Packed weights that executables have in common are kept once: a search compiles the same layers many times.
#ifndef MENDEL_KERNELS_CPU_SHARED_BYTES_H_
#define MENDEL_KERNELS_CPU_SHARED_BYTES_H_

#include <cstddef>
#include <cstdint>
#include <memory>

namespace mendel::cpu {

/// `fresh`, which has `size` bytes, or bytes equal to it that some executable still holds. The result must not be modified.
/// Thread-safe.
std::shared_ptr<const std::byte> Share(std::shared_ptr<const std::byte> fresh, int64_t size);

}  // namespace mendel::cpu

#endif  // MENDEL_KERNELS_CPU_SHARED_BYTES_H_
