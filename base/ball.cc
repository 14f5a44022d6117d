#include "base/ball.h"

#include <arb.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace mendel {
namespace {

static_assert(sizeof(Ball) == sizeof(arb_struct) && alignof(Ball) >= alignof(arb_struct));

arb_ptr Raw(Ball& ball) { return static_cast<arb_ptr>(ball.raw()); }
arb_srcptr Raw(const Ball& ball) { return static_cast<arb_srcptr>(ball.raw()); }
slong Precision() { return BallScope::Current().precision(); }

/// Frees Arb's and FLINT's thread-local caches when a thread ends: parallel loops start theirs
/// anew.
struct ThreadCleanup {
  ThreadCleanup() = default;
  ~ThreadCleanup() { flint_cleanup(); }
};

/// A double interval is exact at this precision, except for the midpoint of far apart ends, which
/// is then rounded outward.
constexpr slong kDoublePrecision = 128;
/// Enough to hold any double's reciprocal error; precision of radii read as doubles.
constexpr slong kRadiusPrecision = 64;

class Arf {
 public:
  Arf() { arf_init(value_); }
  ~Arf() { arf_clear(value_); }
  Arf(const Arf&) = delete;
  Arf& operator=(const Arf&) = delete;
  arf_ptr get() { return value_; }

 private:
  arf_t value_;
};

}  // namespace

void BallContext::Fail(std::string_view reason, bool for_good) const {
  const std::lock_guard lock(mutex_);
  if (failure_.empty() || (for_good && !for_good_)) failure_ = reason;
  for_good_ = for_good_ || for_good;
}

std::string BallContext::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

bool BallContext::failed_for_good() const {
  const std::lock_guard lock(mutex_);
  return for_good_;
}

BallScope::BallScope(const BallContext& context) : previous_(current_) {
  thread_local const ThreadCleanup cleanup;
  static_cast<void>(&cleanup);
  current_ = &context;
}

Ball::Ball(const Ball& other) : Ball() { arb_set(Raw(*this), Raw(other)); }
Ball& Ball::operator=(const Ball& other) {
  arb_set(Raw(*this), Raw(other));
  return *this;
}
Ball::~Ball() { arb_clear(Raw(*this)); }

Ball Ball::FromDouble(double exact) {
  if (std::isnan(exact)) return Indeterminate();
  Ball ball;
  arb_set_d(Raw(ball), exact);
  return ball;
}

Ball Ball::FromInt(int64_t exact) {
  Ball ball;
  arb_set_si(Raw(ball), exact);
  return ball;
}

Ball Ball::Interval(double low, double high) {
  if (std::isnan(low) || std::isnan(high)) return Indeterminate();
  Arf a, b;
  arf_set_d(a.get(), low);
  arf_set_d(b.get(), high);
  Ball ball;
  arb_set_interval_arf(Raw(ball), a.get(), b.get(), kDoublePrecision);
  return ball;
}

Ball Ball::Indeterminate() {
  Ball ball;
  arb_indeterminate(Raw(ball));
  return ball;
}

Ball operator+(const Ball& a, const Ball& b) {
  Ball result;
  arb_add(Raw(result), Raw(a), Raw(b), Precision());
  return result;
}
Ball operator-(const Ball& a, const Ball& b) {
  Ball result;
  arb_sub(Raw(result), Raw(a), Raw(b), Precision());
  return result;
}
Ball operator*(const Ball& a, const Ball& b) {
  Ball result;
  arb_mul(Raw(result), Raw(a), Raw(b), Precision());
  return result;
}
Ball operator/(const Ball& a, const Ball& b) {
  Ball result;
  arb_div(Raw(result), Raw(a), Raw(b), Precision());
  return result;
}
Ball Ball::operator-() const {
  Ball result;
  arb_neg(Raw(result), Raw(*this));
  return result;
}
Ball& Ball::operator+=(const Ball& b) {
  arb_add(Raw(*this), Raw(*this), Raw(b), Precision());
  return *this;
}

bool operator<(const Ball& a, const Ball& b) {
  if (SurelyLess(a, b)) return true;
  if (!SurelyLessOrEqual(b, a))
    BallScope::Current().Fail("a comparison of values too close to distinguish");
  return arf_cmp(arb_midref(Raw(a)), arb_midref(Raw(b))) < 0;
}

bool operator==(const Ball& a, const Ball& b) {
  if (!MayBeEqual(a, b)) return false;
  if (a.IsExact() && b.IsExact()) return arb_equal(Raw(a), Raw(b)) != 0;
  BallScope::Current().Fail("a comparison of values too close to distinguish");
  return arf_equal(arb_midref(Raw(a)), arb_midref(Raw(b))) != 0;
}

bool Ball::IsFinite() const { return arb_is_finite(Raw(*this)) != 0; }
bool Ball::IsExact() const { return IsFinite() && arb_is_exact(Raw(*this)) != 0; }

bool Ball::IsNonPositive() const { return arb_is_nonpositive(Raw(*this)) != 0; }

double Ball::Log2Radius() const {
  if (!IsFinite()) return std::numeric_limits<double>::infinity();
  if (mag_is_zero(arb_radref(Raw(*this)))) return -std::numeric_limits<double>::infinity();
  return mag_get_d_log2_approx(arb_radref(Raw(*this)));
}

double Ball::Middle() const { return arf_get_d(arb_midref(Raw(*this)), ARF_RND_NEAR); }

double Ball::ErrorOfMiddle() const {
  const double middle = Middle();
  if (!IsFinite() || !std::isfinite(middle)) return std::numeric_limits<double>::infinity();
  Ball difference;
  arb_sub(Raw(difference), Raw(*this), Raw(FromDouble(middle)), kRadiusPrecision);
  Arf bound;
  arb_get_abs_ubound_arf(bound.get(), Raw(difference), kRadiusPrecision);
  return arf_get_d(bound.get(), ARF_RND_CEIL);
}

std::pair<double, double> Ball::Bounds() const {
  if (arf_is_nan(arb_midref(Raw(*this)))) {
    return {-std::numeric_limits<double>::infinity(), std::numeric_limits<double>::infinity()};
  }
  const slong precision = std::max<slong>(kDoublePrecision, arf_bits(arb_midref(Raw(*this))));
  Arf low, high;
  arb_get_interval_arf(low.get(), high.get(), Raw(*this), precision);
  return {arf_get_d(low.get(), ARF_RND_FLOOR), arf_get_d(high.get(), ARF_RND_CEIL)};
}

std::pair<double, double> Ball::Magnitude() const {
  if (arf_is_nan(arb_midref(Raw(*this)))) return {0, std::numeric_limits<double>::infinity()};
  Arf low, high;
  arb_get_abs_lbound_arf(low.get(), Raw(*this), kDoublePrecision);
  arb_get_abs_ubound_arf(high.get(), Raw(*this), kDoublePrecision);
  return {arf_get_d(low.get(), ARF_RND_FLOOR), arf_get_d(high.get(), ARF_RND_CEIL)};
}

std::optional<int64_t> Ball::AsInteger() const {
  if (!IsExact() || arf_is_int(arb_midref(Raw(*this))) == 0 ||
      arf_cmpabs_2exp_si(arb_midref(Raw(*this)), 63) >= 0) {
    return std::nullopt;
  }
  return arf_get_si(arb_midref(Raw(*this)), ARF_RND_DOWN);
}

bool SurelyLess(const Ball& a, const Ball& b) { return arb_lt(Raw(a), Raw(b)) != 0; }
bool SurelyLessOrEqual(const Ball& a, const Ball& b) { return arb_le(Raw(a), Raw(b)) != 0; }
bool MayBeEqual(const Ball& a, const Ball& b) { return arb_overlaps(Raw(a), Raw(b)) != 0; }
bool Contains(const Ball& outer, const Ball& inner) {
  return arb_contains(Raw(outer), Raw(inner)) != 0;
}

Ball Hull(const Ball& a, const Ball& b) {
  if (arf_is_nan(arb_midref(Raw(a))) || arf_is_nan(arb_midref(Raw(b))))
    return Ball::Indeterminate();
  Ball result;
  arb_union(Raw(result), Raw(a), Raw(b), Precision());
  return result;
}

}  // namespace mendel
