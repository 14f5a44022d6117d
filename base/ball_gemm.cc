// Products of matrices of balls by error-free transformation: midpoints are cut into slices so short that doubles hold the inner
// products of two slices exactly. A dozen products of doubles cost a small part of what one product of multiprecision numbers
// does. Radii are bounded by one more product of doubles.
//
// Source: K. Ozaki, T. Ogita, S. Oishi, S. M. Rump, "Error-free transformations of matrix multiplication by using fast routines of
// matrix multiplication and its applications", Numerical Algorithms 59 (2012).

#include <arb.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/ball.h"
#include "base/gemm.h"

namespace mendel {
namespace {

/// With fewer rows or columns, cutting costs more than it saves.
constexpr int64_t kLeastExtent = 4;
/// Elements of an operand that are held in slices at a time.
constexpr int64_t kBlockElements = 1 << 21;
/// Slices are that precise beyond the precision wanted, relative to the largest element of a row or column.
constexpr int64_t kGuardBits = 6;
constexpr int64_t kMaxWidth = 24;
/// Magnitudes and radii below 2^-kTiny of their line's largest are taken to be that: products of two never underflow.
constexpr int64_t kTiny = 400;
/// Covers the roundings of sums of up to 2^30 nonnegative doubles.
constexpr double kUpward = 1 + 0x1p-20;
constexpr int64_t kNone = INT64_MIN / 4;
constexpr int64_t kMaxExponent = int64_t{1} << 40;

slong Precision() { return BallScope::Current().precision(); }
arb_srcptr Raw(const Ball* balls) { return reinterpret_cast<arb_srcptr>(balls); }

/// 2^exponent of at most 1000, at least 2^-kTiny.
double PowerOfTwo(int64_t exponent) {
  return std::bit_cast<double>(static_cast<uint64_t>(std::max(exponent, -kTiny) + 1023) << 52);
}

/// One operand as lines - rows of a, columns of b - of `depth` elements each.
struct Lines {
  arb_srcptr data;
  int64_t count;
  int64_t depth;
  int64_t stride;  ///< from line to line
  int64_t step;    ///< within a line

  arb_srcptr At(int64_t line, int64_t p) const { return data + line * stride + p * step; }
};

/// What the elements of a line have in common.
struct Scale {
  int64_t exponent = kNone;  ///< midpoints are below 2^(exponent - 1)
  int64_t lowest = -kNone;   ///< and multiples of 2^lowest
  int64_t radius = kNone;    ///< radii are below 2^radius

  bool zero() const { return lowest == -kNone; }  ///< all midpoints are
};

/// Nothing where an element is not finite or of an absurd size.
std::optional<Scale> ScaleOf(const Lines& lines, int64_t line) {
  Scale scale;
  for (int64_t p = 0; p < lines.depth; ++p) {
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
  if (scale.exponent == kNone) scale.exponent = scale.radius == kNone ? 0 : scale.radius;
  if (scale.radius - scale.exponent > kTiny) return std::nullopt;
  return scale;
}

std::optional<std::vector<Scale>> ScalesOf(const Lines& lines) {
  std::vector<Scale> scales;
  for (int64_t line = 0; line < lines.count; ++line) {
    const std::optional<Scale> scale = ScaleOf(lines, line);
    if (!scale.has_value()) return std::nullopt;
    scales.push_back(*scale);
  }
  return scales;
}

/// How operands are cut. Digit s of a line is at most 2^(width - 1) in magnitude and stands for multiples of
/// 2^(exponent - width (s + 1)). Products of digits i and j are computed for i + j < diagonals.
struct Cut {
  int64_t width = 0;
  int64_t left = 0;  ///< slices of a, and of b
  int64_t right = 0;
  int64_t diagonals = 0;
};

int64_t SlicesFor(const std::vector<Scale>& scales, int64_t wanted, int64_t width) {
  int64_t bits = 1;
  for (const Scale& scale : scales) bits = std::max(bits, std::min(scale.exponent - scale.lowest, wanted));
  return (bits + width - 1) / width;
}

Cut CutFor(const std::vector<Scale>& left, const std::vector<Scale>& right, int64_t depth) {
  const int64_t wanted = Precision() + kGuardBits;
  const int64_t log2_depth = std::bit_width(static_cast<uint64_t>(depth));
  for (Cut cut{kMaxWidth, 0, 0, 0};; --cut.width) {
    cut.left = SlicesFor(left, wanted, cut.width);
    cut.right = SlicesFor(right, wanted, cut.width);
    const int64_t terms = depth * std::min(cut.left, cut.right);
    if (2 * (cut.width - 1) + std::bit_width(static_cast<uint64_t>(terms)) > 53) continue;
    cut.diagonals = std::min(cut.left + cut.right - 1, (wanted + log2_depth + cut.width - 1) / cut.width);
    return cut;
  }
}

/// The `width` bits from position `from` of a midpoint's digits on; position 0 is the leading one, there are zeros outside.
uint64_t Bits(mp_srcptr limbs, mp_size_t size, int64_t from, int64_t width) {
  if (from <= -64 || from >= 64 * size) return 0;
  const auto limb = [&](int64_t k) { return k >= 0 && k < size ? limbs[size - 1 - k] : 0; };
  const int64_t first = from >> 6;
  const int64_t shift = from & 63;
  const uint64_t bits = shift == 0 ? limb(first) : limb(first) << shift | limb(first + 1) >> (64 - shift);
  return bits >> (64 - width);
}

/// An operand in slices, dense in the order of its elements.
struct Sliced {
  std::vector<std::vector<double>> digits;
  std::vector<double> magnitudes;  ///< at least |midpoint| + radius, by 2^exponent of the line
  std::vector<double> radii;       ///< at least radius + what is cut off, by 2^radius of the line
  std::vector<Scale> scales;
  bool exact = true;  ///< all radii are zero
};

class Slicer {
 public:
  /// Element (line, p) gets position line * stride + p * step.
  Slicer(const Lines& lines, std::vector<Scale> scales, int64_t width, int64_t slices, int64_t stride, int64_t step)
      : lines_(lines), width_(width), slices_(slices), stride_(stride), step_(step) {
    const size_t size = static_cast<size_t>(lines.count * lines.depth);
    result_.digits.assign(static_cast<size_t>(slices), std::vector<double>(size));
    result_.magnitudes.resize(size);
    result_.radii.resize(size);
    result_.scales = std::move(scales);
  }

  Sliced Run() {
    for (int64_t line = 0; line < lines_.count; ++line) {
      Scale& scale = result_.scales[static_cast<size_t>(line)];
      const int64_t end = scale.exponent - width_ * slices_;
      if (scale.lowest < end) scale.radius = std::max(scale.radius, end) + 1;
      result_.exact = result_.exact && scale.radius == kNone;
      for (int64_t p = 0; p < lines_.depth; ++p) {
        Slice(lines_.At(line, p), scale, end, static_cast<size_t>(line * stride_ + p * step_));
      }
    }
    return std::move(result_);
  }

 private:
  void Slice(arb_srcptr x, const Scale& scale, int64_t end, size_t at) {
    double& magnitude = result_.magnitudes[at];
    double& radius = result_.radii[at];
    if (!mag_is_zero(arb_radref(x))) {
      const double mantissa = static_cast<double>(MAG_MAN(arb_radref(x))) * 0x1p-30;
      const int64_t exponent = MAG_EXP(arb_radref(x));
      magnitude = mantissa * PowerOfTwo(exponent - scale.exponent);
      radius = mantissa * PowerOfTwo(exponent - scale.radius);
    }
    arf_srcptr middle = arb_midref(x);
    if (arf_is_zero(middle)) return;
    mp_srcptr limbs;
    mp_size_t size;
    ARF_GET_MPN_READONLY(limbs, size, middle);
    const int64_t exponent = ARF_EXP(middle);
    magnitude += static_cast<double>((limbs[size - 1] >> 34) + 1) * 0x1p-30 * PowerOfTwo(exponent - scale.exponent);
    if (exponent - static_cast<int64_t>(arf_bits(middle)) < end) radius += PowerOfTwo(end - scale.radius);
    const double sign = ARF_SGNBIT(middle) ? -1 : 1;
    const int64_t half = int64_t{1} << (width_ - 1);
    int64_t carry = 0;
    for (int64_t s = slices_; s-- > 0;) {
      int64_t digit = carry + static_cast<int64_t>(Bits(limbs, size, width_ * s - (scale.exponent - exponent), width_));
      carry = digit > half ? 1 : 0;
      digit -= carry << width_;
      result_.digits[static_cast<size_t>(s)][at] = sign * static_cast<double>(digit);
    }
  }

  const Lines& lines_;
  int64_t width_;
  int64_t slices_;
  int64_t stride_;
  int64_t step_;
  Sliced result_;
};

/// One block of the product.
class Product {
 public:
  Product(const Sliced& left, const Sliced& right, const Cut& cut, int64_t m, int64_t n, int64_t k)
      : left_(left), right_(right), cut_(cut), m_(m), n_(n), k_(k) {
    for (int64_t t = 0; t < cut.diagonals; ++t) Diagonal(t);
    if (!right.exact) Multiply(left.magnitudes, right.radii, right_radii_);
    if (!left.exact) Multiply(left.radii, right.magnitudes, left_radii_);
    arf_init(sum_);
    mag_init(bound_);
    arb_init(value_);
    limbs_.resize(static_cast<size_t>((cut.width * (cut.diagonals - 1) + 64) / 64 + 2));
  }
  ~Product() {
    arf_clear(sum_);
    mag_clear(bound_);
    arb_clear(value_);
  }
  Product(const Product&) = delete;
  Product& operator=(const Product&) = delete;

  void Write(arb_ptr c, int64_t ldc, bool accumulate) {
    for (int64_t i = 0; i < m_; ++i) {
      for (int64_t j = 0; j < n_; ++j) {
        Assemble(i, j);
        arb_ptr out = c + i * ldc + j;
        if (accumulate) {
          arb_add(out, out, value_, Precision());
        } else {
          arb_set_round(out, value_, Precision());
        }
      }
    }
  }

 private:
  void Multiply(const std::vector<double>& a, const std::vector<double>& b, std::vector<double>& c, bool accumulate = false) const {
    c.resize(static_cast<size_t>(m_ * n_));
    GemmF64(m_, n_, k_, a.data(), k_, b.data(), n_, c.data(), n_, accumulate);
  }

  void Diagonal(int64_t t) {
    sums_.emplace_back();
    const int64_t first = std::max<int64_t>(0, t - cut_.right + 1);
    for (int64_t i = first; i <= std::min(t, cut_.left - 1); ++i) {
      Multiply(left_.digits[static_cast<size_t>(i)], right_.digits[static_cast<size_t>(t - i)], sums_.back(), i > first);
    }
  }

  /// value_ = element (i, j) with its radius.
  void Assemble(int64_t i, int64_t j) {
    const size_t at = static_cast<size_t>(i * n_ + j);
    const Scale& row = left_.scales[static_cast<size_t>(i)];
    const Scale& column = right_.scales[static_cast<size_t>(j)];
    std::fill(limbs_.begin(), limbs_.end(), 0);
    for (int64_t t = 0; t < cut_.diagonals; ++t) {
      const int64_t offset = cut_.width * (cut_.diagonals - 1 - t);
      const __int128 term = static_cast<__int128>(static_cast<int64_t>(sums_[static_cast<size_t>(t)][at])) << (offset & 63);
      limbs_[static_cast<size_t>(offset >> 6)] += static_cast<uint64_t>(term);
      limbs_[static_cast<size_t>(offset >> 6) + 1] += static_cast<int64_t>(term >> 64);
    }
    SetSum();
    arf_mul_2exp_si(arb_midref(value_), sum_, row.exponent + column.exponent - cut_.width * (cut_.diagonals + 1));
    mag_zero(arb_radref(value_));
    if (!right_.exact) AddError(right_radii_[at] * kUpward, row.exponent + column.radius);
    if (!left_.exact) AddError(left_radii_[at] * kUpward, row.radius + column.exponent);
    if (cut_.diagonals == cut_.left + cut_.right - 1 || row.zero() || column.zero()) return;
    // Of each diagonal left out, at most min(left, right) products for each p.
    AddError(static_cast<double>(k_ * std::min(cut_.left, cut_.right)),
             row.exponent + column.exponent - cut_.width * cut_.diagonals);
  }

  /// sum_ = what limbs_ hold, each a signed multiple of its power of 2^64.
  void SetSum() {
    __int128 carry = 0;
    digits_.clear();
    for (const __int128 limb : limbs_) {
      carry += limb;
      digits_.push_back(static_cast<uint64_t>(carry));
      carry >>= 64;
    }
    const bool negative = carry < 0;
    if (negative) mpn_neg(digits_.data(), digits_.data(), static_cast<mp_size_t>(digits_.size()));
    while (!digits_.empty() && digits_.back() == 0) digits_.pop_back();
    if (digits_.empty()) {
      arf_zero(sum_);
    } else {
      arf_set_mpn(sum_, digits_.data(), static_cast<mp_size_t>(digits_.size()), negative ? 1 : 0);
    }
  }

  void AddError(double bound, int64_t exponent) {
    if (bound == 0) return;
    mag_set_d(bound_, bound);
    mag_mul_2exp_si(bound_, bound_, exponent);
    mag_add(arb_radref(value_), arb_radref(value_), bound_);
  }

  const Sliced& left_;
  const Sliced& right_;
  const Cut& cut_;
  int64_t m_, n_, k_;
  std::vector<std::vector<double>> sums_;  // of each diagonal: integers that doubles hold
  std::vector<double> left_radii_;
  std::vector<double> right_radii_;
  std::vector<__int128> limbs_;
  std::vector<mp_limb_t> digits_;
  arf_t sum_;
  mag_t bound_;
  arb_t value_;
};

/// False, and nothing done, where an element has no slices.
bool BySlices(int64_t m, int64_t n, int64_t k, arb_srcptr a, int64_t lda, arb_srcptr b, int64_t ldb, arb_ptr c, int64_t ldc,
              bool accumulate) {
  const Lines left{a, m, k, lda, 1};
  const Lines right{b, n, k, 1, ldb};
  std::optional<std::vector<Scale>> rows = ScalesOf(left);
  if (!rows.has_value()) return false;
  std::optional<std::vector<Scale>> columns = ScalesOf(right);
  if (!columns.has_value()) return false;
  const Cut cut = CutFor(*rows, *columns, k);
  const Sliced sliced_left = Slicer(left, *std::move(rows), cut.width, cut.left, k, 1).Run();
  const Sliced sliced_right = Slicer(right, *std::move(columns), cut.width, cut.right, 1, n).Run();
  Product(sliced_left, sliced_right, cut, m, n, k).Write(c, ldc, accumulate);
  return true;
}

void ByDots(int64_t m, int64_t n, int64_t k, arb_srcptr a, int64_t lda, arb_srcptr b, int64_t ldb, arb_ptr c, int64_t ldc,
            bool accumulate) {
  // Columns of b side by side, so that the inner products read memory in order. The copies share b's digits: never cleared.
  constexpr int64_t kColumns = 8;
  std::vector<arb_struct> columns(static_cast<size_t>(kColumns * k));
  for (int64_t first = 0; first < n; first += kColumns) {
    const int64_t count = std::min(kColumns, n - first);
    for (int64_t p = 0; p < k; ++p) {
      for (int64_t j = 0; j < count; ++j) columns[static_cast<size_t>(j * k + p)] = b[p * ldb + first + j];
    }
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < count; ++j) {
        arb_ptr sum = c + i * ldc + first + j;
        arb_dot(sum, accumulate ? sum : nullptr, 0, a + i * lda, 1, columns.data() + j * k, 1, k, Precision());
      }
    }
  }
}

}  // namespace

void BallGemm(int64_t m, int64_t n, int64_t k, const Ball* a, int64_t lda, const Ball* b, int64_t ldb, Ball* c, int64_t ldc,
              bool accumulate) {
  const int64_t block = std::max<int64_t>(kLeastExtent, kBlockElements / std::max<int64_t>(1, k));
  arb_ptr out = reinterpret_cast<arb_ptr>(c);
  for (int64_t i = 0; i < m; i += block) {
    const int64_t rows = std::min(block, m - i);
    for (int64_t j = 0; j < n; j += block) {
      const int64_t columns = std::min(block, n - j);
      const bool worthwhile = std::min(rows, columns) >= kLeastExtent && k > 0;
      if (worthwhile && BySlices(rows, columns, k, Raw(a + i * lda), lda, Raw(b + j), ldb, out + i * ldc + j, ldc, accumulate))
        continue;
      ByDots(rows, columns, k, Raw(a + i * lda), lda, Raw(b + j), ldb, out + i * ldc + j, ldc, accumulate);
    }
  }
}

}  // namespace mendel
