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

/// A midpoint: digits from the leading one on, and the exponent of what stands before them. Zero
/// has no limbs.
struct Midpoint {
  mp_srcptr limbs = nullptr;
  mp_size_t count = 0;
  int64_t exponent = 0;
  int64_t bits = 0;
  bool negative = false;
};

Midpoint MidpointOf(const arb_struct& x, mp_limb_t&) {
  Midpoint middle;
  if (arf_is_zero(arb_midref(&x))) return middle;
  ARF_GET_MPN_READONLY(middle.limbs, middle.count, arb_midref(&x));
  middle.exponent = ARF_EXP(arb_midref(&x));
  middle.bits = static_cast<int64_t>(arf_bits(arb_midref(&x)));
  middle.negative = ARF_SGNBIT(arb_midref(&x)) != 0;
  return middle;
}

/// `limb` holds the digits.
Midpoint MidpointOf(double x, mp_limb_t& limb) {
  if (x == 0) return {};
  int exponent = 0;
  limb = static_cast<mp_limb_t>(std::ldexp(std::frexp(std::abs(x), &exponent), 64));
  return {&limb, 1, exponent, 64 - std::countr_zero(limb), std::signbit(x)};
}

bool IsUsable(const arb_struct& x) {
  const auto absurd = [](fmpz exponent) {
    return COEFF_IS_MPZ(exponent) || std::abs(exponent) > kMaxExponent;
  };
  return arb_is_finite(&x) && (mag_is_zero(arb_radref(&x)) || !absurd(MAG_EXP(arb_radref(&x)))) &&
         (arf_is_zero(arb_midref(&x)) || !absurd(ARF_EXP(arb_midref(&x))));
}
bool IsUsable(double x) { return std::isfinite(x); }

/// Null where the element is exact.
const mag_struct* RadiusOf(const arb_struct& x) {
  return mag_is_zero(arb_radref(&x)) ? nullptr : arb_radref(&x);
}
const mag_struct* RadiusOf(double) { return nullptr; }

/// Returns nullopt if an element is not finite or of an absurd size.
template <class Element>
std::optional<LineScale> ScaleOf(const Element* line, int64_t step, int64_t begin, int64_t end) {
  LineScale scale;
  for (int64_t p = begin; p < end; ++p) {
    const Element& x = line[p * step];
    if (!IsUsable(x)) return std::nullopt;
    if (const mag_struct* radius = RadiusOf(x); radius != nullptr)
      scale.radius = std::max<int64_t>(scale.radius, MAG_EXP(radius));
    mp_limb_t limb;
    const Midpoint middle = MidpointOf(x, limb);
    if (middle.count == 0) continue;
    scale.exponent = std::max(scale.exponent, middle.exponent + 1);
    scale.lowest = std::min(scale.lowest, middle.exponent - middle.bits);
  }
  return scale;
}

std::optional<LineScale> ScaleOf(const BallLines& lines, int64_t line, int64_t begin, int64_t end) {
  const int64_t first = line * lines.stride;
  return lines.numbers != nullptr ? ScaleOf(lines.numbers + first, lines.step, begin, end)
                                  : ScaleOf(lines.balls + first, lines.step, begin, end);
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
template <class Element, class T>
void Slice(const Element& x, const LineScale& scale, int64_t end, const SliceLayout& layout,
           T* digits, int64_t plane, T& magnitude, T& radius) {
  double size = 0, error = 0;
  if (const mag_struct* bound = RadiusOf(x); bound != nullptr) {
    const double mantissa = static_cast<double>(MAG_MAN(bound)) * 0x1p-30;
    const int64_t exponent = MAG_EXP(bound);
    size = mantissa * PowerOfTwo(exponent - scale.exponent);
    error = mantissa * PowerOfTwo(exponent - scale.radius);
  }
  mp_limb_t limb;
  if (const Midpoint middle = MidpointOf(x, limb); middle.count > 0) {
    const mp_srcptr limbs = middle.limbs;
    size += static_cast<double>((limbs[middle.count - 1] >> 34) + 1) * 0x1p-30 *
            PowerOfTwo(middle.exponent - scale.exponent);
    if (middle.exponent - middle.bits < end) error += PowerOfTwo(end - scale.radius);
    const double sign = middle.negative ? -1 : 1;
    const int64_t half = int64_t{1} << (layout.width - 1);
    int64_t carry = 0;
    for (int64_t s = layout.slices; s-- > 0;) {
      int64_t digit =
          carry + static_cast<int64_t>(Bits(limbs, middle.count,
                                            layout.width * s - (scale.exponent - middle.exponent),
                                            layout.width));
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
      const int64_t from = line * lines.stride + p * lines.step;
      T* const to = digits + p * layout.step;
      if (lines.numbers != nullptr) {
        Slice(lines.numbers[from], scale, end, layout, to, plane, result.magnitudes[at],
              result.radii[at]);
      } else {
        Slice(lines.balls[from], scale, end, layout, to, plane, result.magnitudes[at],
              result.radii[at]);
      }
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
