// One table of 256 bytes, applied to bytes.
#ifndef MENDEL_KERNELS_CPU_KERNELS_CODE_TABLE_H_
#define MENDEL_KERNELS_CPU_KERNELS_CODE_TABLE_H_

#include <array>
#include <cstdint>

namespace mendel::cpu {

/// to[k] = table[from[k]]. `from` and `to` may be the same.
void Translate(const uint8_t* from, int64_t count, const std::array<uint8_t, 256>& table,
               uint8_t* to);

}  // namespace mendel::cpu

#endif  // MENDEL_KERNELS_CPU_KERNELS_CODE_TABLE_H_
