#include "base/prime_field.h"

#include <NTL/lzz_p.h>
#include <NTL/mat_lzz_p.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "base/check.h"
#include "base/field_gemm.h"

namespace mendel {
namespace {

uint64_t MulMod(uint64_t a, uint64_t b, uint64_t n) {
  return static_cast<uint64_t>(static_cast<unsigned __int128>(a) * b % n);
}

uint64_t PowMod(uint64_t base, uint64_t exponent, uint64_t n) {
  uint64_t result = 1 % n;
  for (base %= n; exponent != 0; exponent >>= 1, base = MulMod(base, base, n)) {
    if (exponent & 1) result = MulMod(result, base, n);
  }
  return result;
}

constexpr std::array<uint64_t, 12> kWitnessBases = {2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37};

}  // namespace

bool IsPrime(uint64_t n) {
  if (n < 2) return false;
  for (uint64_t base : kWitnessBases) {
    if (n % base == 0) return n == base;
  }
  const int twos = std::countr_zero(n - 1);
  const uint64_t odd = (n - 1) >> twos;
  for (uint64_t base : kWitnessBases) {
    uint64_t x = PowMod(base, odd, n);
    if (x == 1 || x == n - 1) continue;
    bool composite = true;
    for (int i = 1; i < twos && composite; ++i) {
      x = MulMod(x, x, n);
      composite = x != n - 1;
    }
    if (composite) return false;
  }
  return true;
}

PrimeField::PrimeField(uint64_t prime) : prime_(prime) {
  MENDEL_CHECK(prime > 2 && prime < (uint64_t{1} << 60) && IsPrime(prime));
  bits_ = static_cast<int>(std::bit_width(prime));
  reciprocal_ = static_cast<uint64_t>((static_cast<unsigned __int128>(1) << (2 * bits_)) / prime);
}

PrimeField PrimeField::RandomCertifying(Rng& rng) {
  constexpr uint64_t kLow = uint64_t{1} << 59;
  while (true) {
    const uint64_t candidate = (kLow + rng.Below(kLow)) | 1;
    if (IsPrime(candidate)) return PrimeField(candidate);
  }
}

uint64_t PrimeField::Pow(uint64_t base, uint64_t exponent) const {
  uint64_t result = 1;
  for (; exponent != 0; exponent >>= 1, base = Mul(base, base)) {
    if (exponent & 1) result = Mul(result, base);
  }
  return result;
}

uint64_t PrimeField::Inverse(uint64_t a) const {
  MENDEL_CHECK(a != 0);
  return Pow(a, prime_ - 2);
}

uint64_t PrimeField::FromInt(int64_t value) const {
  const int64_t rest = value % static_cast<int64_t>(prime_);
  return static_cast<uint64_t>(rest < 0 ? rest + static_cast<int64_t>(prime_) : rest);
}

uint64_t PrimeField::FromDouble(double value) const {
  MENDEL_CHECK(std::isfinite(value));
  int exponent = 0;
  const double fraction = std::frexp(value, &exponent);
  const uint64_t mantissa = FromInt(static_cast<int64_t>(std::ldexp(fraction, 53)));
  exponent -= 53;
  const uint64_t base = exponent < 0 ? (prime_ + 1) / 2 : 2;  // (p + 1) / 2 is the inverse of 2
  return Mul(mantissa, Pow(base, static_cast<uint64_t>(std::abs(exponent))));
}

void PrimeField::MatMul(int64_t m, int64_t n, int64_t k, const uint64_t* a, int64_t lda,
                        const uint64_t* b, int64_t ldb, uint64_t* c, int64_t ldc,
                        bool accumulate) const {
  constexpr int64_t kSmall = 6;  // below it, splitting an operand costs as much as the product
  // Putting six planes together costs more than NTL's products of this depth.
  constexpr int64_t kShallow = 96;
  if (std::min({m, n, k}) < kSmall) {
    NaiveMatMul(*this, m, n, k, a, lda, b, ldb, c, ldc, accumulate);
  } else if (HasLimbMatMul(*this) && (k >= kShallow || prime_ < uint64_t{1} << 20)) {
    static const GemmTarget target = SupportedGemmTargets().back();
    LimbMatMul(*this, target, m, n, k, a, lda, b, ldb, c, ldc, accumulate);
  } else {
    NtlMatMul(*this, m, n, k, a, lda, b, ldb, c, ldc, accumulate);
  }
}

void NtlMatMul(const PrimeField& field, int64_t m, int64_t n, int64_t k, const uint64_t* a,
               int64_t lda, const uint64_t* b, int64_t ldb, uint64_t* c, int64_t ldc,
               bool accumulate) {
  NTL::zz_pPush push(static_cast<long>(field.prime()));
  NTL::mat_zz_p left(NTL::INIT_SIZE, m, k);
  NTL::mat_zz_p right(NTL::INIT_SIZE, k, n);
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < k; ++j) left[i][j].LoopHole() = static_cast<long>(a[i * lda + j]);
  }
  for (int64_t i = 0; i < k; ++i) {
    for (int64_t j = 0; j < n; ++j) right[i][j].LoopHole() = static_cast<long>(b[i * ldb + j]);
  }
  NTL::mat_zz_p product;
  NTL::mul(product, left, right);
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      const uint64_t value = static_cast<uint64_t>(NTL::rep(product[i][j]));
      c[i * ldc + j] = accumulate ? field.Add(c[i * ldc + j], value) : value;
    }
  }
}

}  // namespace mendel
