// The four 8-bit floats of ONNX, rounded to nearest even.

#include <bit>
#include <cmath>
#include <limits>

#include "graph/tensor.h"

namespace mendel {
namespace {

/// The layout of a sign, an exponent and `mantissa` bits.
struct Float8Format {
  int mantissa = 3;
  int bias = 7;
  uint8_t largest = 0x7e;  ///< bits of the largest finite number
  uint8_t nan = 0x7f;      ///< 0x80: the only NaN, and no negative zero
  bool infinite = false;   ///< infinity follows the largest finite number

  bool HasNegativeZero() const { return nan != 0x80; }
  /// The least positive number is two to this power.
  int LeastExponent() const { return 1 - bias - mantissa; }
};

constexpr Float8Format kE4M3FN{3, 7, 0x7e, 0x7f, false};
constexpr Float8Format kE4M3FNUZ{3, 8, 0x7f, 0x80, false};
constexpr Float8Format kE5M2{2, 15, 0x7b, 0x7f, true};
constexpr Float8Format kE5M2FNUZ{2, 16, 0x7f, 0x80, false};

const Float8Format& FormatOf(DType dtype) {
  MENDEL_CHECK(IsFloat8(dtype));
  if (dtype == DType::kF8E4M3FN) return kE4M3FN;
  if (dtype == DType::kF8E4M3FNUZ) return kE4M3FNUZ;
  return dtype == DType::kF8E5M2 ? kE5M2 : kE5M2FNUZ;
}

float PowerOfTwo(int exponent) {
  return std::bit_cast<float>(static_cast<uint32_t>(exponent + 127) << 23);
}

/// The bits of a finite magnitude as if exponents had no end.
uint32_t RoundedMagnitude(const Float8Format& format, float magnitude) {
  const float least_normal = PowerOfTwo(1 - format.bias);
  if (magnitude < least_normal) {  // the sum has a last place of the least positive number
    const float place = PowerOfTwo(format.LeastExponent() + 23);
    return std::bit_cast<uint32_t>(magnitude + place) - std::bit_cast<uint32_t>(place);
  }
  const uint32_t bits = std::bit_cast<uint32_t>(magnitude);
  const int dropped = 23 - format.mantissa;
  const uint32_t odd = (bits >> dropped) & 1u;
  const uint32_t rounded = bits + ((1u << (dropped - 1)) - 1) + odd;
  return (rounded >> dropped) - (static_cast<uint32_t>(127 - format.bias) << format.mantissa);
}

}  // namespace

float Float8ToFloat(DType dtype, uint8_t bits) {
  const Float8Format& format = FormatOf(dtype);
  const uint8_t magnitude = bits & 0x7f;
  const bool negative = (bits & 0x80) != 0;
  if (bits == format.nan) return std::numeric_limits<float>::quiet_NaN();
  float value = 0;
  if (magnitude <= format.largest) {
    const int exponent = magnitude >> format.mantissa;
    const int fraction = magnitude & ((1 << format.mantissa) - 1);
    const int whole = exponent == 0 ? fraction : fraction + (1 << format.mantissa);
    value = static_cast<float>(whole) *
            PowerOfTwo(format.LeastExponent() + (exponent == 0 ? 0 : exponent - 1));
  } else if (format.infinite && magnitude == format.largest + 1) {
    value = std::numeric_limits<float>::infinity();
  } else {
    value = std::numeric_limits<float>::quiet_NaN();
  }
  return negative ? -value : value;
}

uint8_t FloatToFloat8(DType dtype, float value) {
  const Float8Format& format = FormatOf(dtype);
  if (std::isnan(value)) return format.nan;
  const uint8_t sign = std::signbit(value) ? 0x80 : 0;
  const float magnitude = std::abs(value);
  const uint32_t bits = std::isinf(magnitude) ? 0x80u : RoundedMagnitude(format, magnitude);
  if (bits > format.largest) {
    if (!format.HasNegativeZero()) return format.nan;
    return static_cast<uint8_t>(sign | (format.infinite ? format.largest + 1 : format.nan));
  }
  return static_cast<uint8_t>(bits == 0 && !format.HasNegativeZero() ? 0 : sign | bits);
}

double LargestFloat8(DType dtype) {
  return static_cast<double>(Float8ToFloat(dtype, FormatOf(dtype).largest));
}

}  // namespace mendel
