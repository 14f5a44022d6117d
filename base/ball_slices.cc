#include "base/ball_slices.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "base/parallel.h"

namespace mendel {
namespace {

/// Magnitudes and radii below 2^-kTiny of their line's largest are taken to be that: neither floats
/// nor products of doubles underflow.
constexpr int64_t kTiny = 100;
constexpr int64_t kMaxExponent = int64_t{1} << 40;
/// Elements a job.
constexpr int64_t kGrain = 1 << 14;
/// Covers the rounding of a double to a float.
constexpr double kUpward = 1 + 0x1p-20;

/// 2^exponent of at most 1000, at least 2^-kTiny.
double PowerOfTwo(int64_t exponent) {
  return std::bit_cast<double>(static_cast<uint64_t>(std::max(exponent, -kTiny) + 1023) << 52);
}

/// Returns nullopt if an element is not finite or of an absurd size.
std::optional<LineScale> ScaleOf(const BallLines& lines, int64_t line, int64_t begin, int64_t end) {
  LineScale scale;
  for (int64_t p = begin; p < end; ++p) {
    arb_srcptr x = lines.At(line, p);
    if (!arb_is_finite(x)) return std::nullopt;
    if (!mag_is_zero(arb_radref(x))) {
      const fmpz exponent = MAG_EXP(arb_radref(x));
      if (COEFF_IS_MPZ(exponent) || std::abs(exponent) > kMaxExponent) return std::nullopt;
      scale.radius = std::max<int64_t>(scale.radius, exponent);
    }
    if (arf_is_zero(arb_midref(x))) continue;
    const fmpz exponent = ARF_EXP(arb_midref(x));
    if (COEFF_IS_MPZ(exponent) || std::abs(exponent) > kMaxExponent) return std::nullopt;
    scale.exponent = std::max<int64_t>(scale.exponent, exponent + 1);
    scale.lowest = std::min<int64_t>(scale.lowest, exponent - arf_bits(arb_midref(x)));
  }
  return scale;
}

/// Parts of a line together.
std::optional<LineScale> Merge(const std::vector<std::optional<LineScale>>& parts) {
  LineScale scale;
  for (const std::optional<LineScale>& part : parts) {
    if (!part.has_value()) return std::nullopt;
    scale.exponent = std::max(scale.exponent, part->exponent);
    scale.lowest = std::min(scale.lowest, part->lowest);
    scale.radius = std::max(scale.radius, part->radius);
  }
  if (scale.exponent == LineScale::kNone)
    scale.exponent = scale.radius == LineScale::kNone ? 0 : scale.radius;
  if (scale.radius - scale.exponent > kTiny) return std::nullopt;
  return scale;
}

/// The `width` bits from position `from` of a midpoint's digits on; position 0 is the leading one,
/// there are zeros outside.
uint64_t Bits(mp_srcptr limbs, mp_size_t size, int64_t from, int64_t width) {
  if (from <= -64 || from >= 64 * size) return 0;
  const auto limb = [&](int64_t k) { return k >= 0 && k < size ? limbs[size - 1 - k] : 0; };
  const int64_t first = from >> 6;
  const int64_t shift = from & 63;
  const uint64_t bits =
      shift == 0 ? limb(first) : limb(first) << shift | limb(first + 1) >> (64 - shift);
  return bits >> (64 - width);
}

template <class T>
T RoundedUp(double bound) {
  return static_cast<T>(bound * kUpward);
}

/// Cuts one element; `plane` is the distance from a digit to the next, `end` the exponent of what
/// digits leave.
template <class T>
void Slice(arb_srcptr x, const LineScale& scale, int64_t end, const SliceLayout& layout, T* digits,
           int64_t plane, T& magnitude, T& radius) {
  double size = 0, error = 0;
  if (!mag_is_zero(arb_radref(x))) {
    const double mantissa = static_cast<double>(MAG_MAN(arb_radref(x))) * 0x1p-30;
    const int64_t exponent = MAG_EXP(arb_radref(x));
    size = mantissa * PowerOfTwo(exponent - scale.exponent);
    error = mantissa * PowerOfTwo(exponent - scale.radius);
  }
  arf_srcptr middle = arb_midref(x);
  if (!arf_is_zero(middle)) {
    mp_srcptr limbs;
    mp_size_t count;
    ARF_GET_MPN_READONLY(limbs, count, middle);
    const int64_t exponent = ARF_EXP(middle);
    size += static_cast<double>((limbs[count - 1] >> 34) + 1) * 0x1p-30 *
            PowerOfTwo(exponent - scale.exponent);
    if (exponent - static_cast<int64_t>(arf_bits(middle)) < end)
      error += PowerOfTwo(end - scale.radius);
    const double sign = ARF_SGNBIT(middle) ? -1 : 1;
    const int64_t half = int64_t{1} << (layout.width - 1);
    int64_t carry = 0;
    for (int64_t s = layout.slices; s-- > 0;) {
      int64_t digit =
          carry + static_cast<int64_t>(Bits(
                      limbs, count, layout.width * s - (scale.exponent - exponent), layout.width));
      carry = digit > half ? 1 : 0;
      digit -= carry << layout.width;
      digits[s * plane] = static_cast<T>(sign * static_cast<double>(digit));
    }
  }
  magnitude = RoundedUp<T>(size);
  radius = RoundedUp<T>(error);
}

}  // namespace

std::optional<std::vector<LineScale>> ScalesOf(const BallLines& lines) {
  std::vector<LineScale> scales;
  for (int64_t line = 0; line < lines.count; ++line) {
    std::vector<std::optional<LineScale>> parts(
        static_cast<size_t>((lines.depth + kGrain - 1) / kGrain));
    ParallelChunks(lines.depth, kGrain, [&](int64_t begin, int64_t end) {
      parts[static_cast<size_t>(begin / kGrain)] = ScaleOf(lines, line, begin, end);
    });
    const std::optional<LineScale> scale = Merge(parts);
    if (!scale.has_value()) return std::nullopt;
    scales.push_back(*scale);
  }
  return scales;
}

template <class T>
BallSlices<T> CutIntoSlices(const BallLines& lines, std::vector<LineScale> scales,
                            const SliceLayout& layout) {
  const size_t size = static_cast<size_t>(lines.count * lines.depth);
  BallSlices<T> result{lines.count,
                       lines.depth,
                       layout,
                       std::vector<T>(size * static_cast<size_t>(layout.slices)),
                       std::vector<T>(size),
                       std::vector<T>(size),
                       {},
                       true};
  for (LineScale& scale : scales) {
    const int64_t end = scale.exponent - layout.width * layout.slices;
    if (scale.lowest < end) scale.radius = std::max(scale.radius, end) + 1;
    result.exact = result.exact && scale.radius == LineScale::kNone;
  }
  const auto cut = [&](int64_t line, int64_t begin, int64_t finish) {
    const LineScale& scale = scales[static_cast<size_t>(line)];
    const int64_t end = scale.exponent - layout.width * layout.slices;
    const int64_t block = line / layout.block;
    T* const digits =
        result.digits.data() + result.Begin(block) + line % layout.block * layout.stride;
    const int64_t plane = result.LinesOf(block) * lines.depth;
    for (int64_t p = begin; p < finish; ++p) {
      const size_t at = static_cast<size_t>(line * layout.stride + p * layout.step);
      Slice(lines.At(line, p), scale, end, layout, digits + p * layout.step, plane,
            result.magnitudes[at], result.radii[at]);
    }
  };
  if (lines.depth > kGrain) {
    for (int64_t line = 0; line < lines.count; ++line) {
      ParallelChunks(lines.depth, kGrain,
                     [&](int64_t begin, int64_t end) { cut(line, begin, end); });
    }
  } else {
    ParallelChunks(lines.count, std::max<int64_t>(1, kGrain / std::max<int64_t>(1, lines.depth)),
                   [&](int64_t begin, int64_t end) {
                     for (int64_t line = begin; line < end; ++line) cut(line, 0, lines.depth);
                   });
  }
  result.scales = std::move(scales);
  return result;
}

template BallSlices<float> CutIntoSlices(const BallLines&, std::vector<LineScale>,
                                         const SliceLayout&);
template BallSlices<double> CutIntoSlices(const BallLines&, std::vector<LineScale>,
                                          const SliceLayout&);

}  // namespace mendel
