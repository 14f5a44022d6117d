// Arithmetic in GF(p) for the verifier. prime_field.cc is the only file of the project that
// includes NTL.
//
// Certifying primes are random in [2^59, 2^60) (docs/verifier.md); any prime below 2^60 works,
// so that tests can measure false-accept rates with tiny ones. Elements are plain residues in [0,
// p).
#ifndef MENDEL_BASE_PRIME_FIELD_H_
#define MENDEL_BASE_PRIME_FIELD_H_

#include <cstdint>

#include "base/random.h"

namespace mendel {

/// Deterministic primality for every 64-bit number (Miller-Rabin with the first 12 prime bases).
bool IsPrime(uint64_t n);

/// GF(p). Immutable and thread-safe.
class PrimeField {
 public:
  /// CHECK-fails unless `prime` is a prime below 2^60 and above 2.
  explicit PrimeField(uint64_t prime);
  /// A uniformly random prime in [2^59, 2^60).
  static PrimeField RandomCertifying(Rng& rng);

  uint64_t prime() const { return prime_; }

  uint64_t Add(uint64_t a, uint64_t b) const {
    const uint64_t sum = a + b;
    return sum >= prime_ ? sum - prime_ : sum;
  }
  uint64_t Sub(uint64_t a, uint64_t b) const { return a >= b ? a - b : a + prime_ - b; }
  uint64_t Neg(uint64_t a) const { return a == 0 ? 0 : prime_ - a; }
  /// Barrett reduction with a (2 * bits)-bit reciprocal: the quotient estimate is short by at most
  /// two.
  uint64_t Mul(uint64_t a, uint64_t b) const {
    const unsigned __int128 product = static_cast<unsigned __int128>(a) * b;
    const unsigned __int128 top = static_cast<uint64_t>(product >> (bits_ - 1));
    const uint64_t quotient = static_cast<uint64_t>((top * reciprocal_) >> (bits_ + 1));
    uint64_t rest = static_cast<uint64_t>(product) - quotient * prime_;
    if (rest >= prime_) rest -= prime_;
    return rest >= prime_ ? rest - prime_ : rest;
  }
  uint64_t Pow(uint64_t base, uint64_t exponent) const;
  /// 1/a; `a` must not be zero (CHECK): callers look for zero denominators first.
  uint64_t Inverse(uint64_t a) const;
  uint64_t FromInt(int64_t value) const;
  /// The dyadic rational that the finite double `value` is, exactly.
  uint64_t FromDouble(double value) const;
  /// 128 uniform bits reduced mod p: bias below 2^-68.
  uint64_t FromBits(uint64_t high, uint64_t low) const {
    const unsigned __int128 wide = (static_cast<unsigned __int128>(high) << 64) | low;
    return static_cast<uint64_t>(wide % prime_);
  }
  uint64_t RandomElement(Rng& rng) const { return rng.Below(prime_); }

  /// c[m x n] (+)= a[m x k] * b[k x n], row-major, leading dimensions in elements. Operands may not
  /// alias `c`.
  void MatMul(int64_t m, int64_t n, int64_t k, const uint64_t* a, int64_t lda, const uint64_t* b,
              int64_t ldb, uint64_t* c, int64_t ldc, bool accumulate) const;

 private:
  uint64_t prime_;
  int bits_;
  uint64_t reciprocal_;  // floor(2^(2 * bits) / p)
};

/// The field that Fp's operators use on this thread while the scope lives. Scopes nest.
class FieldScope {
 public:
  explicit FieldScope(const PrimeField& field) : previous_(current_) { current_ = &field; }
  ~FieldScope() { current_ = previous_; }
  FieldScope(const FieldScope&) = delete;
  FieldScope& operator=(const FieldScope&) = delete;
  static const PrimeField& Current() { return *current_; }

 private:
  const PrimeField* previous_;
  static inline thread_local const PrimeField* current_ = nullptr;
};

/// An element of the current thread's field, with operators, so that an operator's meaning reads
/// the same for doubles and field elements.
struct Fp {
  uint64_t value = 0;

  friend Fp operator+(Fp a, Fp b) { return {FieldScope::Current().Add(a.value, b.value)}; }
  friend Fp operator-(Fp a, Fp b) { return {FieldScope::Current().Sub(a.value, b.value)}; }
  friend Fp operator*(Fp a, Fp b) { return {FieldScope::Current().Mul(a.value, b.value)}; }
  Fp operator-() const { return {FieldScope::Current().Neg(value)}; }
  Fp& operator+=(Fp b) { return *this = *this + b; }
  Fp& operator-=(Fp b) { return *this = *this - b; }
  Fp& operator*=(Fp b) { return *this = *this * b; }
  bool operator==(const Fp&) const = default;
  auto operator<=>(const Fp&) const = default;
};

}  // namespace mendel

#endif  // MENDEL_BASE_PRIME_FIELD_H_
