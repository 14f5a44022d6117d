// Elements of every dtype, and their conversion as Cast means it (graph/ops/cast.cc,
// Tensor::FromDoubles).
#ifndef MENDEL_KERNELS_CPU_KERNELS_CONVERT_H_
#define MENDEL_KERNELS_CPU_KERNELS_CONVERT_H_

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "base/check.h"
#include "graph/tensor.h"
#include "graph/types.h"

namespace mendel::cpu {

/// An element in memory, for dtypes that are no arithmetic types of their own.
struct HalfBits {
  uint16_t bits;
};
struct BFloat16Bits {
  uint16_t bits;
};
struct BoolByte {
  uint8_t byte;
};

/// make(T()) with the element in memory of a dtype.
template <class Make>
auto WithElement(DType dtype, const Make& make) {
  switch (dtype) {
    case DType::kF32:
      return make(float{});
    case DType::kF64:
      return make(double{});
    case DType::kF16:
      return make(HalfBits{});
    case DType::kBF16:
      return make(BFloat16Bits{});
    case DType::kI8:
      return make(int8_t{});
    case DType::kU8:
      return make(uint8_t{});
    case DType::kI32:
      return make(int32_t{});
    case DType::kI64:
      return make(int64_t{});
    case DType::kBool:
      return make(BoolByte{});
  }
  MENDEL_CHECK(false && "a dtype without elements");
  return make(float{});
}

/// The element as a float, a double or an integer, whichever holds it exactly.
template <class T>
auto ValueOf(T x) {
  if constexpr (std::is_same_v<T, HalfBits>) {
    return HalfToFloat(x.bits);
  } else if constexpr (std::is_same_v<T, BFloat16Bits>) {
    return BFloat16ToFloat(x.bits);
  } else if constexpr (std::is_same_v<T, BoolByte>) {
    return int64_t{x.byte != 0};
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<int64_t>(x);
  } else {
    return x;
  }
}

/// Towards zero; 0 of NaN, the nearest i64 of what lies beyond.
template <class F>
int64_t Truncated(F x) {
  if (std::isnan(x)) return 0;
  if (x >= F{0x1p63}) return std::numeric_limits<int64_t>::max();
  if (x < F{-0x1p63}) return std::numeric_limits<int64_t>::min();
  return static_cast<int64_t>(x);
}

/// A float, a double or an i64 as an element: floats round to nearest even (a 16-bit one by way of
/// f32), integers wrap.
template <class To, class V>
To ElementOf(V x) {
  if constexpr (std::is_same_v<To, HalfBits>) {
    return {FloatToHalf(static_cast<float>(x))};
  } else if constexpr (std::is_same_v<To, BFloat16Bits>) {
    return {FloatToBFloat16(static_cast<float>(x))};
  } else if constexpr (std::is_same_v<To, BoolByte>) {
    return {static_cast<uint8_t>(x != V{0})};
  } else if constexpr (std::is_integral_v<To> && !std::is_integral_v<V>) {
    return static_cast<To>(Truncated(x));
  } else {
    return static_cast<To>(x);
  }
}

}  // namespace mendel::cpu

#endif  // MENDEL_KERNELS_CPU_KERNELS_CONVERT_H_
