#include "base/prime_field.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace mendel {
namespace {

TEST(IsPrime, DecidesHardCases) {
  EXPECT_TRUE(IsPrime(2));
  EXPECT_TRUE(IsPrime(83));
  EXPECT_TRUE(IsPrime((uint64_t{1} << 61) - 1));
  EXPECT_FALSE(IsPrime(1));
  EXPECT_FALSE(IsPrime(3215031751));           // strong pseudoprime to 2, 3, 5, 7
  EXPECT_FALSE(IsPrime(3825123056546413051));  // strong pseudoprime to the first nine primes
}

TEST(PrimeField, MultipliesAsWideIntegersDo) {
  for (uint64_t prime : {uint64_t{3}, uint64_t{83}, uint64_t{65537}, (uint64_t{1} << 60) - 93, (uint64_t{1} << 59) + 55}) {
    if (!IsPrime(prime)) continue;
    const PrimeField field(prime);
    Rng rng(prime);
    for (int i = 0; i < 2000; ++i) {
      const uint64_t a = i == 0 ? prime - 1 : field.RandomElement(rng);
      const uint64_t b = i < 2 ? prime - 1 : field.RandomElement(rng);
      EXPECT_EQ(field.Mul(a, b), static_cast<uint64_t>(static_cast<unsigned __int128>(a) * b % prime));
      if (a != 0) {
        EXPECT_EQ(field.Mul(a, field.Inverse(a)), 1u);
      }
    }
  }
}

TEST(PrimeField, MapsDyadicsExactly) {
  Rng rng(1);
  const PrimeField field = PrimeField::RandomCertifying(rng);
  EXPECT_EQ(field.Mul(field.FromDouble(0.375), 8), 3u);
  EXPECT_EQ(field.FromDouble(-2), field.prime() - 2);
  EXPECT_EQ(field.Add(field.FromDouble(0.1f), field.FromDouble(-0.1f)), 0u);
  EXPECT_EQ(field.Mul(field.FromDouble(0x1p-1074), field.FromDouble(0x1p1000)), field.Mul(1, field.Inverse(field.Pow(2, 74))));
}

TEST(PrimeField, MatMulEqualsTheDefinition) {
  Rng rng(2);
  for (const auto& [m, n, k] : std::vector<std::array<int64_t, 3>>{{1, 1, 1}, {3, 5, 7}, {17, 33, 65}, {8, 1, 300}}) {
    const PrimeField field = PrimeField::RandomCertifying(rng);
    std::vector<uint64_t> a(static_cast<size_t>(m * k)), b(static_cast<size_t>(k * n)), c(static_cast<size_t>(m * n), 1);
    for (auto& value : a) value = rng.Flip(0.1) ? field.prime() - 1 : field.RandomElement(rng);
    for (auto& value : b) value = rng.Flip(0.1) ? field.prime() - 1 : field.RandomElement(rng);
    field.MatMul(m, n, k, a.data(), k, b.data(), n, c.data(), n, true);
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        uint64_t sum = 1;
        for (int64_t p = 0; p < k; ++p)
          sum = field.Add(sum, field.Mul(a[static_cast<size_t>(i * k + p)], b[static_cast<size_t>(p * n + j)]));
        ASSERT_EQ(c[static_cast<size_t>(i * n + j)], sum);
      }
    }
  }
}

}  // namespace
}  // namespace mendel
