#include "mutator/low_rank.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>

#include "base/random.h"
#include "base/status.h"
#include "mutator/row_basis.h"

namespace mendel {
namespace {

StoredMatrix Product(const StoredMatrix& a, const StoredMatrix& b) {
  StoredMatrix c{a.rows, b.columns, std::vector<double>(a.rows * b.columns, 0)};
  for (size_t i = 0; i < a.rows; ++i) {
    for (size_t k = 0; k < a.columns; ++k) {
      for (size_t j = 0; j < b.columns; ++j)
        c.values[i * b.columns + j] += a.values[i * a.columns + k] * b.values[k * b.columns + j];
    }
  }
  return c;
}

StoredMatrix Integers(Rng& rng, size_t rows, size_t columns, int64_t largest) {
  StoredMatrix matrix{rows, columns, {}};
  for (size_t i = 0; i < rows * columns; ++i)
    matrix.values.push_back(static_cast<double>(rng.Between(-largest, largest)));
  return matrix;
}

/// The factors give the matrix back; every sum here is exact in double.
void ExpectFactors(const StoredMatrix& matrix, const MatrixFactors& factors) {
  EXPECT_EQ(Product(factors.left, factors.right).values, matrix.values);
  for (const StoredMatrix* factor : {&factors.left, &factors.right}) {
    for (const double value : factor->values)
      EXPECT_EQ(static_cast<double>(static_cast<float>(value)), value);
  }
}

TEST(FactorExactly, ProductsOfSmallIntegers) {
  constexpr uint64_t kSeed = 17;
  int found = 0, all = 0;
  for (uint64_t run = 0; run < 400; ++run) {
    SCOPED_TRACE(Cat("seed ", kSeed + run));
    Rng rng(kSeed + run);
    const size_t rank = static_cast<size_t>(rng.Between(1, 8));
    const auto right = Integers(rng, rank, 30, 3);
    const StoredMatrix matrix = Product(Integers(rng, 40, rank, 3), right);
    const auto factors = FactorExactly(matrix, 12);
    ++all;
    if (!factors.has_value()) continue;
    ++found;
    EXPECT_LE(factors->left.columns, rank);
    ExpectFactors(matrix, *factors);
  }
  std::printf("%d of %d products of ranks 1 to 8 factored\n", found, all);
  EXPECT_GE(10 * found, 9 * all);
}

TEST(FactorExactly, RepeatedScaledAndZeroRowsOfAnyFloats) {
  Rng rng(5);
  StoredMatrix matrix{20, 50, {}};
  for (size_t i = 0; i < 20; ++i) {
    const double scale = i < 3    ? 1
                         : i == 7 ? 0
                                  : std::ldexp(1.0, static_cast<int>(rng.Between(-3, 3)));
    for (size_t j = 0; j < 50; ++j)
      matrix.values.push_back(i < 3 ? static_cast<double>(static_cast<float>(rng.Normal() * 0.1))
                                    : scale * matrix.values[i % 3 * 50 + j]);
  }
  const auto factors = FactorExactly(matrix, 10);
  ASSERT_TRUE(factors.has_value());
  EXPECT_EQ(factors->left.columns, 3u);
  ExpectFactors(matrix, *factors);
  StoredMatrix turned{50, 20, std::vector<double>(1000)};
  for (size_t i = 0; i < 20; ++i) {
    for (size_t j = 0; j < 50; ++j) turned.values[j * 20 + i] = matrix.values[i * 50 + j];
  }
  const auto columns = FactorExactly(turned, 10);
  ASSERT_TRUE(columns.has_value());
  ExpectFactors(turned, *columns);
}

TEST(FactorExactly, RefusesWhatIsNoProduct) {
  Rng rng(9);
  const auto right = Integers(rng, 4, 30, 3);
  StoredMatrix matrix = Product(Integers(rng, 30, 4, 3), right);
  EXPECT_FALSE(FactorExactly(matrix, 3).has_value()) << "rank 4";
  ASSERT_TRUE(FactorExactly(matrix, 5).has_value());
  // Rank 5, no short factors.
  matrix.values[431] = std::nextafterf(static_cast<float>(matrix.values[431]), 100.0f);
  const auto touched = FactorExactly(matrix, 5);
  if (touched.has_value()) ExpectFactors(matrix, *touched);
  EXPECT_FALSE(FactorExactly(matrix, 4).has_value()) << "one bit of one element";
  EXPECT_FALSE(FactorExactly({4, 4, std::vector<double>(16, 0)}, 3).has_value()) << "rank 0";
  EXPECT_FALSE(FactorExactly({2, 2, {1, 2, 2, INFINITY}}, 3).has_value());
  // Rows of rank 2, the coefficients thirds: no floats.
  EXPECT_FALSE(
      FactorExactly({3, 3, {1, 0, 0.3333333432674408, 0, 1, 0.1, 1, 1, 1e-20}}, 2).has_value());
}

TEST(FactorExactly, SeveralThroughTheHighestRank) {
  Rng rng(31);
  const StoredMatrix two = Product(Integers(rng, 12, 2, 3), Integers(rng, 2, 9, 3));
  const StoredMatrix one = Product(Integers(rng, 12, 1, 3), Integers(rng, 1, 9, 3));
  const StoredMatrix zero{12, 9, std::vector<double>(108, 0)};
  const auto factors = FactorAllExactly({one, zero, two}, 4);
  ASSERT_TRUE(factors.has_value());
  ASSERT_EQ(factors->size(), 3u);
  ExpectFactors(one, (*factors)[0]);
  ExpectFactors(zero, (*factors)[1]);
  ExpectFactors(two, (*factors)[2]);
  for (const MatrixFactors& each : *factors)
    EXPECT_EQ(each.left.columns, (*factors)[2].left.columns);
  EXPECT_FALSE(FactorAllExactly({one, two}, 1).has_value());
  EXPECT_FALSE(FactorAllExactly({zero, zero}, 4).has_value());
}

/// Products of whole numbers, whose rows and columns have scales of their own, have the rank of
/// their factors at most.
TEST(RowBasis, AHigherRankIsNeverSeenWhereThereIsNone) {
  Rng rng(testing::UnitTest::GetInstance()->random_seed());
  for (int repeat = 0; repeat < 2000; ++repeat) {
    const size_t rank = static_cast<size_t>(rng.Between(1, 12)), rows = rank + rng.Below(40),
                 columns = rank + rng.Below(40);
    std::vector<int64_t> left(rows * rank), right(rank * columns);
    for (int64_t& value : left) value = rng.Between(-9, 9);
    for (int64_t& value : right) value = rng.Between(-9, 9);
    std::vector<double> of_row(rows), of_column(columns);
    for (double& scale : of_row) scale = std::exp2(static_cast<double>(rng.Between(-20, 20)));
    for (double& scale : of_column) scale = std::exp2(static_cast<double>(rng.Between(-8, 8)));
    const auto element = [&](size_t i, size_t j) {
      int64_t sum = 0;
      for (size_t k = 0; k < rank; ++k) sum += left[i * rank + k] * right[k * columns + j];
      return static_cast<double>(sum) * of_row[i] * of_column[j];
    };
    EXPECT_FALSE(HasHigherRank(rows, columns, element, rank)) << "repeat " << repeat;
  }
}

/// Rounding that a division by a small pivot enlarges is not taken for a pivot.
TEST(RowBasis, NearlyDependentRows) {
  Rng rng(testing::UnitTest::GetInstance()->random_seed());
  for (int repeat = 0; repeat < 2000; ++repeat) {
    std::vector<std::vector<double>> of(3, std::vector<double>(12));
    for (std::vector<double>& row : of) {
      for (double& value : row) value = static_cast<double>(rng.Between(-3, 3));
    }
    const double small = std::exp2(static_cast<double>(rng.Between(-24, -1)));
    const auto element = [&](size_t i, size_t j) {
      const double first = of[i < 2 ? 0 : i - 1][j];
      return i == 1 || i == 2 ? first + small * of[i][j] : first;
    };
    EXPECT_FALSE(HasHigherRank(4, 12, element, 3)) << "repeat " << repeat << ", " << small;
  }
}

TEST(RowBasis, AHigherRankIsSeen) {
  Rng rng(testing::UnitTest::GetInstance()->random_seed());
  for (int repeat = 0; repeat < 200; ++repeat) {
    const size_t rows = 2 + rng.Below(60), columns = 2 + rng.Below(60);
    std::vector<double> values(rows * columns);
    for (double& value : values) value = static_cast<double>(rng.Between(-1 << 20, 1 << 20));
    const auto element = [&](size_t i, size_t j) { return values[i * columns + j]; };
    EXPECT_TRUE(HasHigherRank(rows, columns, element, std::min(rows, columns) - 1));
    EXPECT_FALSE(HasHigherRank(rows, columns, element, std::min(rows, columns)));
  }
}

/// A few columns allow all that can be factored, and no other low rank.
TEST(RowBasis, AFewColumnsShowWhatCanBeFactored) {
  Rng rng(9);
  for (int run = 0; run < 50; ++run) {
    SCOPED_TRACE(run);
    const StoredMatrix right = Integers(rng, 6, 300, 3);
    EXPECT_TRUE(MayBeFactored(Product(Integers(rng, 40, 6, 3), right), 8));
    EXPECT_FALSE(MayBeFactored(Product(Integers(rng, 40, 6, 1 << 20), right), 8));
    EXPECT_FALSE(MayBeFactored(Product(Integers(rng, 40, 6, 3), right), 5));
  }
}

TEST(RowBasis, NumbersOfResidues) {
  const PrimeField& field = RowBasisField();
  EXPECT_TRUE(IsPrime(field.prime()));
  EXPECT_EQ(AsDyadic(field.FromDouble(-0.375)), -0.375);
  EXPECT_EQ(AsDyadic(field.Inverse(3)), std::nullopt);
  const auto third = AsFraction(field.Mul(field.FromInt(-7), field.Inverse(3)));
  ASSERT_TRUE(third.has_value());
  EXPECT_EQ(*third, (std::pair<int64_t, int64_t>(-7, 3)));
  EXPECT_EQ(*AsFraction(0), (std::pair<int64_t, int64_t>(0, 1)));
}

}  // namespace
}  // namespace mendel
