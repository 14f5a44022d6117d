// Products of matrices of balls by error-free transformation. Midpoints are cut into slices so
// short that doubles represent the inner products of two slices exactly. A dozen products of
// doubles cost a small part of one product of multiprecision numbers. One more product of doubles
// bounds the radii.

#include "base/ball_gemm.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "base/ball.h"
#include "base/ball_slices.h"
#include "base/gemm.h"

namespace mendel {
namespace {

/// With fewer rows or columns, cutting costs more than it saves.
constexpr int64_t kLeastExtent = 4;
/// Elements of an operand that are kept in slices at a time, and the rows and elements of a
/// product.
constexpr int64_t kBlockElements = 1 << 20;
constexpr int64_t kBlockRows = 512;
constexpr int64_t kBlockProduct = 1 << 16;
/// Slices have this many bits more than the requested precision, relative to the largest element
/// of a row or column.
constexpr int64_t kGuardBits = 6;
/// Digits so far below the largest radius of a line are cut off: the radius hides them. Other
/// elements of the line may be sharper.
constexpr int64_t kBitsBelowRadius = 20;
/// Widths of slices on the right, which floats represent, and on the left.
constexpr int64_t kMaxWidthRight = 25;
constexpr int64_t kMaxWidthLeft = 40;
constexpr int64_t kMostSlices = 400;
/// Covers the roundings of sums of up to 2^30 nonnegative doubles.
constexpr double kUpward = 1 + 0x1p-20;

slong Precision() { return BallScope::Current().precision(); }
arb_srcptr Raw(const Ball* balls) { return reinterpret_cast<arb_srcptr>(balls); }

/// The right operand of a product, row-major: balls, or numbers.
struct Right {
  arb_srcptr balls = nullptr;
  const double* numbers = nullptr;
  int64_t stride = 0;

  /// Columns from `first` on.
  BallLines Columns(int64_t first, int64_t count, int64_t depth) const {
    return {balls == nullptr ? nullptr : balls + first,
            numbers == nullptr ? nullptr : numbers + first,
            count,
            depth,
            1,
            stride};
  }
};

/// The cut of both operands. The product of digits i (left) and j (right) is computed if
/// left_width * i + right_width * j < limit. Others are below 2^-limit of the product of the
/// largest elements of both lines.
struct Cut {
  int64_t left_width = 0;
  int64_t left = 0;  ///< slices
  int64_t right_width = 0;
  int64_t right = 0;
  int64_t limit = 0;

  /// Digits on the left that digit j on the right is multiplied by.
  int64_t Partners(int64_t j) const {
    return std::clamp<int64_t>((limit - right_width * j + left_width - 1) / left_width, 0, left);
  }
  int64_t Products() const {
    int64_t count = 0;
    for (int64_t j = 0; j < right; ++j) count += Partners(j);
    return count;
  }
};

/// Bits that an operand is known to, relative to the largest element of a line, and some more.
int64_t Accuracy(const std::vector<LineScale>& scales) {
  int64_t bits = 1;
  for (const LineScale& scale : scales) {
    int64_t known = Precision() + kGuardBits;
    if (scale.radius != LineScale::kNone)
      known = std::min(known, scale.exponent - scale.radius + kBitsBelowRadius);
    bits = std::max(bits, known);
  }
  return bits;
}

int64_t BitsWanted(const std::vector<LineScale>& scales) {
  const int64_t known = Accuracy(scales);
  int64_t bits = 1;
  for (const LineScale& scale : scales)
    bits = std::max(bits, std::min<int64_t>(scale.bits(), known));
  return bits;
}

/// The fewest products whose sums over `depth` doubles can represent. Weights of few bits allow
/// wide slices on the other side.
Cut CutFor(const std::vector<LineScale>& left_scales, const std::vector<LineScale>& right_scales,
           int64_t depth) {
  const int64_t left_bits = BitsWanted(left_scales), right_bits = BitsWanted(right_scales);
  const int64_t known = std::min(Accuracy(left_scales), Accuracy(right_scales));
  const int64_t log2_depth = std::bit_width(static_cast<uint64_t>(depth));
  Cut best;
  double least = std::numeric_limits<double>::infinity();
  for (int64_t left = 1; left <= kMostSlices && static_cast<double>(left) < least; ++left) {
    Cut cut{(left_bits + left - 1) / left, left, 0, 0, known + log2_depth};
    cut.right_width = std::min(kMaxWidthRight, 53 - log2_depth - cut.left_width + 2);
    if (cut.left_width > kMaxWidthLeft || cut.right_width < 2) continue;
    cut.right = (right_bits + cut.right_width - 1) / cut.right_width;
    cut.right_width = std::max<int64_t>(2, (right_bits + cut.right - 1) / cut.right);
    const double cost =
        static_cast<double>(cut.Products()) + 0.5 * static_cast<double>(cut.right);  // and packing
    if (cost < least) best = cut;
    least = std::min(least, cost);
    if (cut.left_width <= 2) break;
  }
  return best;
}

/// One block of rows by columns.
class Product {
 public:
  /// `column_step`: 0 where all columns have one scale.
  Product(const BallSlices<double>& left, int64_t block, const BallSlices<float>& right,
          int64_t column_step, const Cut& cut, int64_t n, const BallProducts::Gather& gather)
      : left_(left),
        first_(block * left.layout.block),
        right_(right),
        column_step_(column_step),
        cut_(cut),
        m_(left.LinesOf(block)),
        n_(n),
        k_(left.depth),
        columns_(Scratch(k_ * n)) {
    const double* const digits = left.digits.data() + left.Begin(block);
    for (int64_t j = 0; j < cut.right && cut.Partners(j) > 0; ++j) {
      gather(right.digits.data() + j * right.count * right.depth, columns_);
      sums_.push_back(Times(digits, cut.Partners(j) * m_));
    }
    if (!right.exact) {
      gather(right.radii.data(), columns_);
      right_radii_ = Times(left.magnitudes.data() + first_ * k_, m_);
    }
    if (!left.exact) {
      gather(right.magnitudes.data(), columns_);
      left_radii_ = Times(left.radii.data() + first_ * k_, m_);
    }
    arf_init(sum_);
    mag_init(bound_);
    arb_init(value_);
    limbs_.resize(static_cast<size_t>(
        (cut.left_width * (cut.left - 1) + cut.right_width * (cut.right - 1) + 64) / 64 + 2));
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
  /// Scratch memory of the thread, for one product at a time. The system takes pages back from
  /// large blocks that are freed.
  static double* Scratch(int64_t size) {
    thread_local std::vector<double> scratch;
    scratch.resize(std::max(scratch.size(), static_cast<size_t>(size)));
    return scratch.data();
  }

  std::vector<double> Times(const double* a, int64_t rows) const {
    std::vector<double> c(static_cast<size_t>(rows * n_));
    GemmF64(rows, n_, k_, a, k_, columns_, n_, c.data(), n_, false);
    return c;
  }

  /// value_ = element (row, column) with its radius.
  void Assemble(int64_t row, int64_t column) {
    const size_t at = static_cast<size_t>(row * n_ + column);
    const LineScale& a = left_.scales[static_cast<size_t>(first_ + row)];
    const LineScale& b = right_.scales[static_cast<size_t>(column * column_step_)];
    std::fill(limbs_.begin(), limbs_.end(), 0);
    for (size_t j = 0; j < sums_.size(); ++j) {
      int64_t offset = cut_.left_width * (cut_.left - 1) +
                       cut_.right_width * (cut_.right - 1 - static_cast<int64_t>(j));
      for (size_t from = at; from < sums_[j].size();
           from += static_cast<size_t>(m_ * n_), offset -= cut_.left_width) {
        const __int128 term = static_cast<__int128>(static_cast<int64_t>(sums_[j][from]))
                              << (offset & 63);
        limbs_[static_cast<size_t>(offset >> 6)] += static_cast<uint64_t>(term);
        limbs_[static_cast<size_t>(offset >> 6) + 1] += static_cast<int64_t>(term >> 64);
      }
    }
    SetSum();
    arf_mul_2exp_si(
        arb_midref(value_), sum_,
        a.exponent + b.exponent - cut_.left_width * cut_.left - cut_.right_width * cut_.right);
    mag_zero(arb_radref(value_));
    if (!right_.exact) AddError(right_radii_[at] * kUpward, a.exponent + b.radius);
    if (!left_.exact) AddError(left_radii_[at] * kUpward, a.radius + b.exponent);
    if (left_out_ == 0 || a.zero() || b.zero()) return;
    AddError(left_out_, a.exponent + b.exponent - cut_.limit);
  }

  /// sum_ = the sum of limbs_, each a signed multiple of its power of 2^64.
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

  const BallSlices<double>& left_;
  int64_t first_;  // row of the left operand
  const BallSlices<float>& right_;
  int64_t column_step_;
  const Cut& cut_;
  int64_t m_, n_, k_;
  double* columns_;
  std::vector<std::vector<double>>
      sums_;  // sums of digit j on the right: with digit 0 on the left, then 1, ...: integers
  std::vector<double> left_radii_;
  std::vector<double> right_radii_;
  /// Upper bound on the omitted products of an inner product, in units of 2^-limit of the largest
  /// elements of both lines. Digit s is at most 2^-(width s + 1) of its line's largest element. For
  /// each of the k_ positions and each digit i with omitted partners j, the omitted |d_i e_j| are
  /// at most 2^-(limit + 2), 2^-(limit + 3), .. and sum to less than 2^-(limit + 1).
  double left_out_ = cut_.Products() == cut_.left * cut_.right
                         ? 0
                         : static_cast<double>(k_ * std::min(cut_.left, cut_.right)) / 2;
  std::vector<__int128> limbs_;
  std::vector<mp_limb_t> digits_;
  arf_t sum_;
  mag_t bound_;
  arb_t value_;
};

void ByDots(int64_t m, int64_t n, int64_t k, arb_srcptr a, int64_t lda, arb_srcptr b, int64_t ldb,
            arb_ptr c, int64_t ldc, bool accumulate) {
  // Columns of b lie side by side, so that the inner products read memory in order. The copies
  // share b's digits and are never cleared.
  constexpr int64_t kColumns = 8;
  std::vector<arb_struct> columns(static_cast<size_t>(kColumns * k));
  for (int64_t first = 0; first < n; first += kColumns) {
    const int64_t count = std::min(kColumns, n - first);
    for (int64_t p = 0; p < k; ++p) {
      for (int64_t j = 0; j < count; ++j)
        columns[static_cast<size_t>(j * k + p)] = b[p * ldb + first + j];
    }
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < count; ++j) {
        arb_ptr sum = c + i * ldc + first + j;
        arb_dot(sum, accumulate ? sum : nullptr, 0, a + i * lda, 1, columns.data() + j * k, 1, k,
                Precision());
      }
    }
  }
}

/// False, and nothing is done, where an element has no slices.
bool BySlices(int64_t m, int64_t n, int64_t k, arb_srcptr a, int64_t lda, const Right& b, arb_ptr c,
              int64_t ldc, bool accumulate) {
  const BallLines rows{a, nullptr, m, k, lda, 1};
  std::optional<std::vector<LineScale>> row_scales = ScalesOf(rows);
  if (!row_scales.has_value()) return false;
  const std::optional<std::vector<LineScale>> column_scales = ScalesOf(b.Columns(0, n, k));
  if (!column_scales.has_value()) return false;
  const Cut cut = CutFor(*row_scales, *column_scales, k);
  const BallSlices<double> left =
      CutIntoSlices<double>(rows, *std::move(row_scales), {cut.left_width, cut.left, m, k, 1});
  const int64_t strip =
      std::clamp(std::min(kBlockElements / k, kBlockProduct / m), kLeastExtent, n);
  for (int64_t j = 0; j < n; j += strip) {
    const int64_t count = std::min(strip, n - j);
    const BallSlices<float> right = CutIntoSlices<float>(
        b.Columns(j, count, k), {column_scales->begin() + j, column_scales->begin() + j + count},
        {cut.right_width, cut.right, count, 1, count});
    const auto copy = [&](const float* plane, double* columns) {
      std::copy_n(plane, count * k, columns);
    };
    Product(left, 0, right, 1, cut, count, copy).Write(c + j, ldc, accumulate);
  }
  return true;
}

class SlicedProducts : public BallProducts {
 public:
  SlicedProducts(const Cut& cut, BallSlices<double> left, BallSlices<float> image)
      : cut_(cut), left_(std::move(left)), image_(std::move(image)) {}

  void Multiply(int64_t block, int64_t n, const Gather& gather, Ball* c,
                int64_t ldc) const override {
    Product(left_, block, image_, 0, cut_, n, gather)
        .Write(reinterpret_cast<arb_ptr>(c), ldc, false);
  }

 private:
  Cut cut_;
  BallSlices<double> left_;
  BallSlices<float> image_;
};

std::unique_ptr<const BallProducts> MakeProducts(const BallLines& lines, int64_t block,
                                                 const Ball* image, int64_t size) {
  const int64_t depth = lines.stride;
  if (block < kLeastExtent || depth == 0 || size == 0) return nullptr;
  const BallLines whole{Raw(image), nullptr, 1, size, size, 1};
  std::optional<std::vector<LineScale>> row_scales = ScalesOf(lines);
  if (!row_scales.has_value()) return nullptr;
  std::optional<std::vector<LineScale>> image_scale = ScalesOf(whole);
  if (!image_scale.has_value()) return nullptr;
  const Cut cut = CutFor(*row_scales, *image_scale, depth);
  return std::make_unique<const SlicedProducts>(
      cut,
      CutIntoSlices<double>(lines, *std::move(row_scales),
                            {cut.left_width, cut.left, block, depth, 1}),
      CutIntoSlices<float>(whole, *std::move(image_scale),
                           {cut.right_width, cut.right, 1, size, 1}));
}

}  // namespace

std::unique_ptr<const BallProducts> BallProducts::Make(const Ball* left, int64_t rows,
                                                       int64_t depth, int64_t block,
                                                       const Ball* image, int64_t size) {
  return MakeProducts({Raw(left), nullptr, rows, depth, depth, 1}, block, image, size);
}

std::unique_ptr<const BallProducts> BallProducts::Make(const double* left, int64_t rows,
                                                       int64_t depth, int64_t block,
                                                       const Ball* image, int64_t size) {
  return MakeProducts({nullptr, left, rows, depth, depth, 1}, block, image, size);
}

namespace {

void Multiply(int64_t m, int64_t n, int64_t k, arb_srcptr a, int64_t lda, const Right& b, arb_ptr c,
              int64_t ldc, bool accumulate) {
  const int64_t block =
      std::clamp(kBlockElements / std::max<int64_t>(1, k), kLeastExtent, kBlockRows);
  std::vector<Ball> balls;
  for (int64_t i = 0; i < m; i += block) {
    const int64_t rows = std::min(block, m - i);
    const bool worthwhile = std::min(rows, n) >= kLeastExtent && k > 0;
    if (worthwhile && BySlices(rows, n, k, a + i * lda, lda, b, c + i * ldc, ldc, accumulate))
      continue;
    if (b.balls == nullptr && balls.empty()) {
      for (int64_t p = 0; p < k; ++p) {
        for (int64_t j = 0; j < n; ++j)
          balls.push_back(Ball::FromDouble(b.numbers[p * b.stride + j]));
      }
    }
    const bool copied = b.balls == nullptr;
    ByDots(rows, n, k, a + i * lda, lda, copied ? Raw(balls.data()) : b.balls,
           copied ? n : b.stride, c + i * ldc, ldc, accumulate);
  }
}

}  // namespace

void BallGemm(int64_t m, int64_t n, int64_t k, const Ball* a, int64_t lda, const Ball* b,
              int64_t ldb, Ball* c, int64_t ldc, bool accumulate) {
  Multiply(m, n, k, Raw(a), lda, {Raw(b), nullptr, ldb}, reinterpret_cast<arb_ptr>(c), ldc,
           accumulate);
}

void BallGemm(int64_t m, int64_t n, int64_t k, const Ball* a, int64_t lda, const double* b,
              int64_t ldb, Ball* c, int64_t ldc, bool accumulate) {
  Multiply(m, n, k, Raw(a), lda, {nullptr, b, ldb}, reinterpret_cast<arb_ptr>(c), ldc, accumulate);
}

}  // namespace mendel
