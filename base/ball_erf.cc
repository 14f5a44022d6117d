// The error function by Taylor polynomials at the points of a grid: a third of Arb's time in the
// networks that have a million of them.

#include "base/ball_erf.h"

#include <arb_hypgeom.h>
#include <arb_poly.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

namespace mendel {
namespace {

/// Points of the grid are multiples of 2^-kGridBits. Arguments from kLeast to kMost have one.
constexpr int kGridBits = 7;
constexpr double kLeast = 0x1p-4;
constexpr double kMost = 7;
constexpr size_t kPoints = static_cast<size_t>(kMost * (1 << kGridBits)) + 1;
/// A table of coefficients exists for each multiple of kPrecisionStep bits.
constexpr slong kPrecisionStep = 64;
constexpr slong kMostPrecision = 512;
constexpr slong kGuardBits = 12;  ///< bits that may be lost: erf is at least 2^-4 on the grid
/// Coefficient k of the polynomial at a real point is at most 20 / 2^k: within a distance of 2 from
/// the real line |erf| is at most 1 + 2 / sqrt(pi) * (the integral of exp(t^2) from 0 to 2) < 20,
/// and Cauchy's estimate holds on the circle of radius 2. An argument is at most 2^-(kGridBits + 1)
/// from its point.
constexpr slong kBitsOfTerm = kGridBits + 2;
constexpr double kTail = 40;  ///< the sum of what is cut off, by its first term's power of 2
/// A bound of the derivative of erf, which is at most 2 / sqrt(pi).
constexpr double kSlope = 1.1284;

slong TermsFor(slong bits) { return (bits + 6) / kBitsOfTerm + 1; }

/// Coefficients at one point. y'' = -2 x y' gives each one from the two before it.
class Coefficients {
 public:
  Coefficients(int64_t point, slong precision) : count_(TermsFor(precision)) {
    values_ = _arb_vec_init(count_);
    const slong bits = precision + 2 * count_;
    arb_t center, part;
    arb_init(center);
    arb_init(part);
    arb_set_si(center, point);
    arb_mul_2exp_si(center, center, -kGridBits);
    arb_hypgeom_erf(values_, center, bits);
    arb_mul(part, center, center, bits);
    arb_neg(part, part);
    arb_exp(values_ + 1, part, bits);
    arb_const_sqrt_pi(part, bits);
    arb_div(values_ + 1, values_ + 1, part, bits);
    arb_mul_2exp_si(values_ + 1, values_ + 1, 1);
    for (slong k = 0; k + 2 < count_; ++k) {
      arb_mul(part, center, values_ + k + 1, bits);
      arb_mul_si(part, part, k + 1, bits);
      arb_addmul_si(part, values_ + k, k, bits);
      arb_mul_si(part, part, -2, bits);
      arb_div_si(values_ + k + 2, part, (k + 1) * (k + 2), bits);
    }
    arb_clear(center);
    arb_clear(part);
  }
  ~Coefficients() { _arb_vec_clear(values_, count_); }
  Coefficients(const Coefficients&) = delete;
  Coefficients& operator=(const Coefficients&) = delete;

  arb_srcptr values() const { return values_; }

 private:
  slong count_;
  arb_ptr values_;
};

/// Points are made when they are first read.
class Table {
 public:
  explicit Table(slong precision) : precision_(precision) {}
  ~Table() {
    for (std::atomic<const Coefficients*>& point : points_) delete point.load();
  }

  const Coefficients& At(size_t point) {
    const Coefficients* found = points_[point].load(std::memory_order_acquire);
    if (found != nullptr) return *found;
    const std::scoped_lock lock(mutex_);
    found = points_[point].load(std::memory_order_acquire);
    if (found == nullptr) {
      found = new Coefficients(static_cast<int64_t>(point), precision_);
      points_[point].store(found, std::memory_order_release);
    }
    return *found;
  }

 private:
  const slong precision_;
  std::mutex mutex_;
  std::array<std::atomic<const Coefficients*>, kPoints> points_{};
};

Table& TableFor(slong precision) {
  static std::mutex mutex;
  static auto& tables = *new std::map<slong, std::unique_ptr<Table>>;
  thread_local slong last_precision = 0;
  thread_local Table* last = nullptr;
  if (last_precision == precision) return *last;
  const std::scoped_lock lock(mutex);
  std::unique_ptr<Table>& table = tables[precision];
  if (table == nullptr) table = std::make_unique<Table>(precision);
  last_precision = precision;
  last = table.get();
  return *last;
}

/// Bits after the point that are worth computing: a radius hides the others. Returns nullopt if no
/// table has enough bits.
std::optional<slong> BitsFor(arb_srcptr x, double near, slong precision) {
  if (!(std::abs(near) >= kLeast && std::abs(near) < kMost)) return std::nullopt;
  slong bits = precision + kGuardBits;
  if (!mag_is_zero(arb_radref(x))) {
    const fmpz exponent = MAG_EXP(arb_radref(x));
    if (COEFF_IS_MPZ(exponent) || exponent > 0) return std::nullopt;
    bits = std::min<slong>(bits, kGuardBits - exponent);
  }
  if (bits > kMostPrecision) return std::nullopt;
  return bits;
}

}  // namespace

void BallErf(arb_ptr result, arb_srcptr x, slong precision) {
  const double near = arf_get_d(arb_midref(x), ARF_RND_NEAR);
  const std::optional<slong> bits = BitsFor(x, near, precision);
  if (!bits.has_value()) return arb_hypgeom_erf(result, x, precision);
  const slong rounded = (*bits + kPrecisionStep - 1) / kPrecisionStep * kPrecisionStep;
  const int64_t point = std::llround(std::abs(near) * (1 << kGridBits));
  const Coefficients& at = TableFor(rounded).At(static_cast<size_t>(point));
  arb_t offset, value;
  arb_init(offset);
  arb_init(value);
  mag_t error;
  mag_init(error);
  // The offset of |midpoint| from the grid's point, without a radius.
  arb_set_arf(offset, arb_midref(x));
  arb_abs(offset, offset);
  arf_t center;
  arf_init(center);
  arf_set_si_2exp_si(center, point, -kGridBits);
  arf_sub(arb_midref(offset), arb_midref(offset), center, ARF_PREC_EXACT, ARF_RND_DOWN);
  const slong terms = TermsFor(*bits);
  _arb_poly_evaluate_rectangular(value, at.values(), terms, offset, *bits + kGuardBits);
  const fmpz first_left = -terms * kBitsOfTerm;
  mag_set_d_2exp_fmpz(error, kTail, &first_left);
  arb_add_error_mag(value, error);
  mag_set_d(error, kSlope);
  mag_mul(error, error, arb_radref(x));
  arb_add_error_mag(value, error);
  if (near < 0) arb_neg(value, value);
  arb_set_round(result, value, precision);
  arf_clear(center);
  mag_clear(error);
  arb_clear(value);
  arb_clear(offset);
}

}  // namespace mendel
