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
template <DType kDType>
struct Float8Bits {
  uint8_t bits;
};
struct UnsignedWord {
  uint64_t word;
};

/// The dtype of an 8-bit float's element; kF32 of all others.
template <class T>
inline constexpr DType kFloat8Of = DType::kF32;
template <DType kDType>
inline constexpr DType kFloat8Of<Float8Bits<kDType>> = kDType;

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
    case DType::kI16:
      return make(int16_t{});
    case DType::kU16:
      return make(uint16_t{});
    case DType::kU32:
      return make(uint32_t{});
    case DType::kU64:
      return make(UnsignedWord{});
    case DType::kF8E4M3FN:
      return make(Float8Bits<DType::kF8E4M3FN>{});
    case DType::kF8E4M3FNUZ:
      return make(Float8Bits<DType::kF8E4M3FNUZ>{});
    case DType::kF8E5M2:
      return make(Float8Bits<DType::kF8E5M2>{});
    case DType::kF8E5M2FNUZ:
      return make(Float8Bits<DType::kF8E5M2FNUZ>{});
  }
  MENDEL_CHECK(false && "a dtype without elements");
  return make(float{});
}

/// The element as a float, a double, an i64 or a u64, whichever holds it exactly.
template <class T>
auto ValueOf(T x) {
  if constexpr (std::is_same_v<T, HalfBits>) {
    return HalfToFloat(x.bits);
  } else if constexpr (std::is_same_v<T, BFloat16Bits>) {
    return BFloat16ToFloat(x.bits);
  } else if constexpr (std::is_same_v<T, BoolByte>) {
    return int64_t{x.byte != 0};
  } else if constexpr (std::is_same_v<T, UnsignedWord>) {
    return x.word;
  } else if constexpr (kFloat8Of<T> != DType::kF32) {
    return Float8ToFloat(kFloat8Of<T>, x.bits);
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

/// A float, a double, an i64 or a u64 as an element: floats round to nearest even (one of at most
/// 16 bits by way of f32), integers wrap.
template <class To, class V>
To ElementOf(V x) {
  if constexpr (std::is_same_v<To, HalfBits>) {
    return {FloatToHalf(static_cast<float>(x))};
  } else if constexpr (std::is_same_v<To, BFloat16Bits>) {
    return {FloatToBFloat16(static_cast<float>(x))};
  } else if constexpr (std::is_same_v<To, BoolByte>) {
    return {static_cast<uint8_t>(x != V{0})};
  } else if constexpr (kFloat8Of<To> != DType::kF32) {
    return {FloatToFloat8(kFloat8Of<To>, static_cast<float>(x))};
  } else if constexpr (std::is_same_v<To, UnsignedWord>) {
    if constexpr (std::is_integral_v<V>)
      return {static_cast<uint64_t>(x)};
    else if (x >= V{0x1p64})
      return {~uint64_t{0}};
    else
      return {x >= V{0x1p63} ? static_cast<uint64_t>(x) : static_cast<uint64_t>(Truncated(x))};
  } else if constexpr (std::is_integral_v<To> && !std::is_integral_v<V>) {
    return static_cast<To>(Truncated(x));
  } else {
    return static_cast<To>(x);
  }
}

}  // namespace mendel::cpu

#endif  // MENDEL_KERNELS_CPU_KERNELS_CONVERT_H_
