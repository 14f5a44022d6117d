#include "base/prime_field.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "base/field_gemm.h"

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
  for (uint64_t prime : {uint64_t{3}, uint64_t{83}, uint64_t{65537}, (uint64_t{1} << 60) - 93,
                         (uint64_t{1} << 59) + 55}) {
    if (!IsPrime(prime)) continue;
    const PrimeField field(prime);
    Rng rng(prime);
    for (int i = 0; i < 2000; ++i) {
      const uint64_t a = i == 0 ? prime - 1 : field.RandomElement(rng);
      const uint64_t b = i < 2 ? prime - 1 : field.RandomElement(rng);
      EXPECT_EQ(field.Mul(a, b),
                static_cast<uint64_t>(static_cast<unsigned __int128>(a) * b % prime));
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
  EXPECT_EQ(field.Mul(field.FromDouble(0x1p-1074), field.FromDouble(0x1p1000)),
            field.Mul(1, field.Inverse(field.Pow(2, 74))));
}

TEST(PrimeField, MatMulEqualsTheDefinition) {
  Rng rng(2);
  for (const auto& [m, n, k] :
       std::vector<std::array<int64_t, 3>>{{1, 1, 1}, {3, 5, 7}, {17, 33, 65}, {8, 1, 300}}) {
    const PrimeField field = PrimeField::RandomCertifying(rng);
    std::vector<uint64_t> a(static_cast<size_t>(m * k)), b(static_cast<size_t>(k * n)),
        c(static_cast<size_t>(m * n), 1);
    for (auto& value : a) value = rng.Flip(0.1) ? field.prime() - 1 : field.RandomElement(rng);
    for (auto& value : b) value = rng.Flip(0.1) ? field.prime() - 1 : field.RandomElement(rng);
    field.MatMul(m, n, k, a.data(), k, b.data(), n, c.data(), n, true);
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        uint64_t sum = 1;
        for (int64_t p = 0; p < k; ++p)
          sum = field.Add(
              sum, field.Mul(a[static_cast<size_t>(i * k + p)], b[static_cast<size_t>(p * n + j)]));
        ASSERT_EQ(c[static_cast<size_t>(i * n + j)], sum);
      }
    }
  }
}

/// Operands of one product: random, with many largest and smallest residues.
std::vector<uint64_t> Operand(const PrimeField& field, int64_t size, double extreme, Rng& rng) {
  std::vector<uint64_t> values(static_cast<size_t>(size));
  for (uint64_t& value : values) {
    value = rng.Flip(extreme) ? field.prime() - 1 - rng.Below(2) : field.RandomElement(rng);
    if (rng.Flip(0.05)) value = 0;
  }
  return values;
}

TEST(FieldGemm, AgreesWithNtlAndTheDefinitionOnEveryTarget) {
  Rng rng(3);
  std::vector<uint64_t> primes = {3, 83, 65537, 1048573, (uint64_t{1} << 60) - 93};
  for (int i = 0; i < 2; ++i) primes.push_back(PrimeField::RandomCertifying(rng).prime());
  for (uint64_t prime : primes) {
    const PrimeField field(prime);
    ASSERT_TRUE(HasLimbMatMul(field));
    for (const auto& [m, n, k] : std::vector<std::array<int64_t, 3>>{{1, 1, 1},
                                                                     {6, 6, 6},
                                                                     {7, 9, 11},
                                                                     {129, 5, 3},
                                                                     {3, 257, 31},
                                                                     {2, 3, 1025},
                                                                     {131, 259, 40},
                                                                     {9, 17, 2100},
                                                                     {4, 4, 0}}) {
      for (double extreme : {0.0, 0.3, 1.0}) {
        const std::vector<uint64_t> a = Operand(field, m * (k + 2), extreme, rng);
        const std::vector<uint64_t> b = Operand(field, k * (n + 1), extreme, rng);
        const std::vector<uint64_t> start = Operand(field, m * (n + 3), extreme, rng);
        const bool accumulate = rng.Flip();
        std::vector<uint64_t> expected = start, naive = start;
        NtlMatMul(field, m, n, k, a.data(), k + 2, b.data(), n + 1, expected.data(), n + 3,
                  accumulate);
        NaiveMatMul(field, m, n, k, a.data(), k + 2, b.data(), n + 1, naive.data(), n + 3,
                    accumulate);
        ASSERT_EQ(naive, expected) << "prime " << prime << ", " << m << " x " << n << " x " << k;
        for (GemmTarget target : SupportedGemmTargets()) {
          std::vector<uint64_t> found = start;
          LimbMatMul(field, target, m, n, k, a.data(), k + 2, b.data(), n + 1, found.data(), n + 3,
                     accumulate);
          ASSERT_EQ(found, expected)
              << "prime " << prime << ", target " << static_cast<int>(target) << ", " << m << " x "
              << n << " x " << k << ", extreme " << extreme;
        }
      }
    }
  }
}

}  // namespace
}  // namespace mendel
