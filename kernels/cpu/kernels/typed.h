// Helpers for kernels that are written once for several element types.
#ifndef MENDEL_KERNELS_CPU_KERNELS_TYPED_H_
#define MENDEL_KERNELS_CPU_KERNELS_TYPED_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "graph/types.h"

namespace mendel::cpu {

/// make(T()) with the unsigned integer of `bytes` (1, 2, 4 or 8) bytes, for kernels that only move
/// elements.
template <class Make>
auto WithWord(int64_t bytes, const Make& make) {
  if (bytes == 1) return make(uint8_t{});
  if (bytes == 2) return make(uint16_t{});
  if (bytes == 4) return make(uint32_t{});
  return make(uint64_t{});
}

/// True for the element types that kernels calculate in as they are.
inline bool IsNumber(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kF64 || dtype == DType::kI32 ||
         dtype == DType::kI64;
}

/// make(T()) for such an element type.
template <class Make>
auto WithNumber(DType dtype, const Make& make) {
  if (dtype == DType::kF64) return make(double{});
  if (dtype == DType::kI32) return make(int32_t{});
  if (dtype == DType::kI64) return make(int64_t{});
  return make(float{});
}

/// Offset of position `flat` (row-major) of a box.
inline int64_t OffsetOf(const Shape& extents, const Shape& strides, int64_t flat) {
  int64_t offset = 0;
  for (size_t d = extents.size(); d-- > 0; flat /= extents[d])
    offset += flat % extents[d] * strides[d];
  return offset;
}

/// Returns the number of items that justify a thread when one costs `work` elements.
inline int64_t GrainOf(int64_t work) {
  return std::max<int64_t>(1, (1 << 14) / std::max<int64_t>(1, work));
}

}  // namespace mendel::cpu

#endif  // MENDEL_KERNELS_CPU_KERNELS_TYPED_H_
