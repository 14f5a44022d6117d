// Real numbers enclosed by balls: a midpoint of many bits and a radius, with arithmetic that keeps
// the true value inside.
//
// Source: Arb (F. Johansson, "Arb: efficient arbitrary-precision midpoint-radius interval
// arithmetic", 2017). Every result contains whatever its operands may stand for. A result that
// cannot be bounded (a division by a ball around zero) is indeterminate: it encloses everything.
// Balls may be infinite. Operations round to the precision of the thread's BallScope.
#ifndef MENDEL_BASE_BALL_H_
#define MENDEL_BASE_BALL_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace mendel {

/// Reading of the constants that a definition gives as a decimal or an irrational without saying
/// how it is rounded: 0.044715 and pi of Gelu by tanh, 1/6 of HardSwish. Runtimes keep them in
/// float, libraries in double. A claim that is true under every reading does not depend on the
/// choice.
enum class ConstantReading { kReal, kDouble, kFloat };

/// The precision of one evaluation, shared by its threads, and the first reason why its results are
/// unreliable. Reasons are a decision that the balls leave open (the order of two that overlap) and
/// a function without an enclosure. Thread-safe.
class BallContext {
 public:
  explicit BallContext(int precision_bits, ConstantReading reading = ConstantReading::kReal)
      : precision_(precision_bits), reading_(reading) {}
  BallContext(const BallContext&) = delete;
  BallContext& operator=(const BallContext&) = delete;

  int precision() const { return precision_; }
  /// Marks the results as invalid. A higher precision may help with an undecided comparison;
  /// `for_good` states that it does not.
  void Fail(std::string_view reason, bool for_good = false) const;
  /// The failure is empty when results are enclosures.
  std::string failure() const;
  bool failed_for_good() const;

  /// Marks the results as dependent on the reading and returns it.
  ConstantReading ReadConstant() const {
    constant_read_.store(true, std::memory_order_relaxed);
    return reading_;
  }
  /// True when results depend on the reading.
  bool constant_read() const { return constant_read_.load(std::memory_order_relaxed); }

 private:
  int precision_;
  ConstantReading reading_;
  mutable std::atomic<bool> constant_read_ = false;
  mutable std::mutex mutex_;
  mutable std::string failure_;
  mutable bool for_good_ = false;
};

/// The context of this thread's balls while the scope lives. Scopes nest.
class BallScope {
 public:
  explicit BallScope(const BallContext& context);
  ~BallScope() { current_ = previous_; }
  BallScope(const BallScope&) = delete;
  BallScope& operator=(const BallScope&) = delete;
  static const BallContext& Current() { return *current_; }

 private:
  const BallContext* previous_;
  static inline thread_local const BallContext* current_ = nullptr;
};

/// A value type; the default is exactly zero.
class Ball {
 public:
  Ball() noexcept { std::memset(storage_, 0, sizeof(storage_)); }
  Ball(const Ball& other);
  Ball(Ball&& other) noexcept {
    std::memcpy(storage_, other.storage_, sizeof(storage_));
    std::memset(other.storage_, 0, sizeof(storage_));
  }
  Ball& operator=(const Ball& other);
  Ball& operator=(Ball&& other) noexcept {
    swap(other);
    return *this;
  }
  ~Ball();
  void swap(Ball& other) noexcept { std::swap(storage_, other.storage_); }

  /// The argument is exact and may be infinite. NaN is indeterminate.
  static Ball FromDouble(double exact);
  static Ball FromInt(int64_t exact);
  /// All numbers from `low` to `high`; indeterminate when one of them is NaN.
  static Ball Interval(double low, double high);
  static Ball Indeterminate();

  friend Ball operator+(const Ball& a, const Ball& b);
  friend Ball operator-(const Ball& a, const Ball& b);
  friend Ball operator*(const Ball& a, const Ball& b);
  friend Ball operator/(const Ball& a, const Ball& b);
  Ball operator-() const;
  Ball& operator+=(const Ball& b);
  Ball& operator-=(const Ball& b) { return *this = *this - b; }
  Ball& operator*=(const Ball& b) { return *this = *this * b; }

  /// Decisions for code that must have one (sorting). Where the balls leave it open the context
  /// fails and the midpoints decide.
  friend bool operator<(const Ball& a, const Ball& b);
  friend bool operator>(const Ball& a, const Ball& b) { return b < a; }
  friend bool operator==(const Ball& a, const Ball& b);

  /// True for a bounded set of numbers.
  bool IsFinite() const;
  /// True for one finite number.
  bool IsExact() const;
  /// True only where it is certain.
  bool IsNonPositive() const;
  /// log2 of the radius; -infinity for an exact ball, infinity for one that is not finite.
  double Log2Radius() const;
  /// The double next to the midpoint (NaN when indeterminate), and an upper bound of the distance
  /// of the value from it.
  double Middle() const;
  double ErrorOfMiddle() const;
  /// Doubles below and above all values, as close as doubles are.
  std::pair<double, double> Bounds() const;

  /// Doubles below and above the magnitudes of all values.
  std::pair<double, double> Magnitude() const;

  /// The integer that an exact ball is, when it fits 64 bits.
  std::optional<int64_t> AsInteger() const;

  /// Arb's own structure (arb_ptr), for base/ball*.cc.
  void* raw() { return storage_; }
  const void* raw() const { return storage_; }

 private:
  alignas(8) std::byte storage_[48];
};

/// Relations that are certain of all values: a < b, a <= b; whether they may be equal; whether
/// every value of `inner` is one of `outer`.
bool SurelyLess(const Ball& a, const Ball& b);
bool SurelyLessOrEqual(const Ball& a, const Ball& b);
bool MayBeEqual(const Ball& a, const Ball& b);
bool Contains(const Ball& outer, const Ball& inner);

/// A ball around all values of both.
Ball Hull(const Ball& a, const Ball& b);

/// c[m x n] (+)= a[m x k] * b[k x n], row-major, every sum with one rounding. Large products are as
/// precise as the largest element of a row of `a` and of a column of `b`. Single-threaded.
void BallGemm(int64_t m, int64_t n, int64_t k, const Ball* a, int64_t lda, const Ball* b,
              int64_t ldb, Ball* c, int64_t ldc, bool accumulate);
/// The same where b's elements are numbers, which take a sixth of the memory.
void BallGemm(int64_t m, int64_t n, int64_t k, const Ball* a, int64_t lda, const double* b,
              int64_t ldb, Ball* c, int64_t ldc, bool accumulate);

}  // namespace mendel

#endif  // MENDEL_BASE_BALL_H_
