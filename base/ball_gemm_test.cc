// Products of matrices of balls against the same sums at a precision that is exact for
// them.

#include "base/ball_gemm.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "base/ball.h"
#include "base/ball_functions.h"
#include "base/random.h"

namespace mendel {
namespace {

constexpr int kExact = 4000;

struct Extents {
  int64_t m, n, k;
};

/// Elements are drawn by these rules. A ball stands for a range of numbers; `points` has one of
/// each.
struct Matrix {
  std::vector<Ball> balls;
  std::vector<Ball> points;

  void Add(const Ball& ball, const Ball& point) {
    balls.push_back(ball);
    points.push_back(point);
  }
};

Ball ScaledByPowerOfTwo(const Ball& x, int64_t exponent) {
  Ball result = x;
  for (; exponent > 1000; exponent -= 1000) result *= Ball::FromDouble(0x1p1000);
  for (; exponent < -1000; exponent += 1000) result *= Ball::FromDouble(0x1p-1000);
  return result * Ball::FromDouble(std::ldexp(1.0, static_cast<int>(exponent)));
}

/// Numbers of `reach` binary orders of magnitude; with `rounded`, their thirds, which are inexact
/// at `precision`.
Matrix Draw(Rng& rng, int64_t count, int64_t reach, bool rounded, int precision) {
  const BallContext exact(kExact), coarse(precision);
  Matrix matrix;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t exponent = rng.Between(-reach, reach);
    const double number = rng.Flip(0.2) ? 0 : static_cast<double>(static_cast<float>(rng.Normal()));
    const auto value = [&](const BallContext& context) {
      const BallScope scope(context);
      const Ball x = ScaledByPowerOfTwo(Ball::FromDouble(number), exponent);
      return rounded ? x / Ball::FromInt(3) : x;
    };
    matrix.Add(value(coarse), value(exact));
  }
  return matrix;
}

/// Largest radius of the product, in units of the last place of the largest product in its sum.
/// Checks that each element is an enclosure.
double Check(const Extents& e, const Matrix& a, const Matrix& b, int precision, bool accumulate) {
  const BallContext exact(kExact), coarse(precision);
  std::vector<Ball> got(static_cast<size_t>(e.m * e.n), Ball::FromInt(accumulate ? 7 : 0));
  {
    const BallScope scope(coarse);
    BallGemm(e.m, e.n, e.k, a.balls.data(), e.k, b.balls.data(), e.n, got.data(), e.n, accumulate);
  }
  const BallScope scope(exact);
  double worst = -std::numeric_limits<double>::infinity();
  for (int64_t i = 0; i < e.m; ++i) {
    for (int64_t j = 0; j < e.n; ++j) {
      Ball sum = Ball::FromInt(accumulate ? 7 : 0);
      double largest_a = 0, largest_b = 0;
      for (int64_t p = 0; p < e.k; ++p) {
        const Ball& x = a.points[static_cast<size_t>(i * e.k + p)];
        const Ball& y = b.points[static_cast<size_t>(p * e.n + j)];
        sum += x * y;
        largest_a = std::max(largest_a, x.Magnitude().second);
        largest_b = std::max(largest_b, y.Magnitude().second);
      }
      const Ball& enclosure = got[static_cast<size_t>(i * e.n + j)];
      EXPECT_TRUE(Contains(enclosure, sum)) << i << ", " << j;
      const double scale =
          std::log2(largest_a * largest_b * static_cast<double>(e.k) + (accumulate ? 7 : 0));
      if (enclosure.Log2Radius() > -std::numeric_limits<double>::infinity()) {
        worst = std::max(worst, enclosure.Log2Radius() - scale + precision);
      }
    }
  }
  return worst;
}

TEST(BallGemm, EnclosesProductsOfAllKinds) {
  Rng rng(3);
  RecordProperty("seed", 3);
  for (const Extents& e :
       {Extents{4, 4, 1}, Extents{5, 9, 40}, Extents{9, 7, 150}, Extents{3, 20, 20}}) {
    for (const int precision : {32, 64, 100, 128, 333}) {
      for (const bool rounded_a : {false, true}) {
        for (const bool rounded_b : {false, true}) {
          const Matrix a = Draw(rng, e.m * e.k, 10, rounded_a, precision);
          const Matrix b = Draw(rng, e.k * e.n, 10, rounded_b, precision);
          EXPECT_LE(Check(e, a, b, precision, rng.Flip()), 4)
              << e.m << " " << e.n << " " << e.k << " at " << precision;
        }
      }
    }
  }
}

/// Columns of numbers give the balls that the same columns of exact balls give.
TEST(BallGemm, NumbersAreExactBalls) {
  Rng rng(17);
  RecordProperty("seed", 17);
  const double infinity = std::numeric_limits<double>::infinity();
  const std::array<double, 8> corners = {0.0,      -0.0, 0x1p-1074, -0x1.8p-1060,
                                         0x1p1023, 1.0,  infinity,  std::nan("")};
  for (int round = 0; round < 40; ++round) {
    const Extents e{rng.Between(1, 9), rng.Between(1, 40), rng.Between(1, 60)};
    const int precision = static_cast<int>(rng.Between(24, 200));
    const Matrix a = Draw(rng, e.m * e.k, 10, true, precision);
    const size_t kinds = round % 4 == 0 ? corners.size() : round % 4 == 1 ? 6 : 2;
    std::vector<double> numbers;
    std::vector<Ball> balls;
    for (int64_t i = 0; i < e.k * e.n; ++i) {
      numbers.push_back(rng.Flip(0.1) ? corners[rng.Below(kinds)] : rng.Normal());
      balls.push_back(Ball::FromDouble(numbers.back()));
    }
    const bool accumulate = rng.Flip();
    const BallContext context(precision);
    const BallScope scope(context);
    std::vector<Ball> by_balls(static_cast<size_t>(e.m * e.n), Ball::FromInt(accumulate ? 7 : 0));
    std::vector<Ball> by_numbers = by_balls;
    BallGemm(e.m, e.n, e.k, a.balls.data(), e.k, balls.data(), e.n, by_balls.data(), e.n,
             accumulate);
    BallGemm(e.m, e.n, e.k, a.balls.data(), e.k, numbers.data(), e.n, by_numbers.data(), e.n,
             accumulate);
    for (size_t i = 0; i < by_balls.size(); ++i) {
      EXPECT_TRUE(arb_equal(reinterpret_cast<arb_srcptr>(&by_balls[i]),
                            reinterpret_cast<arb_srcptr>(&by_numbers[i])))
          << round << ": element " << i;
    }
  }
}

TEST(BallGemm, SizesFarApartCostPrecisionAndNothingElse) {
  Rng rng(4);
  RecordProperty("seed", 4);
  const Extents e{6, 6, 30};
  for (const int64_t reach : {60, 300, 480}) {
    for (const bool rounded : {false, true}) {
      const Matrix a = Draw(rng, e.m * e.k, reach, rounded, 128);
      const Matrix b = Draw(rng, e.k * e.n, reach, rounded, 128);
      EXPECT_LE(Check(e, a, b, 128, false), 4) << reach;
    }
  }
}

/// Only the ends of these wide balls are extreme.
TEST(BallGemm, RadiiOfBothSidesCount) {
  Rng rng(5);
  RecordProperty("seed", 5);
  const Extents e{5, 6, 12};
  const BallContext exact(kExact);
  const BallScope scope(exact);
  for (int round = 0; round < 40; ++round) {
    Matrix a, b;
    for (Matrix* matrix : {&a, &b}) {
      const double width = std::pow(10, rng.Uniform(-12, 2));
      for (int64_t i = 0; i < 100; ++i) {
        const double low = rng.Flip(0.3) ? 0 : rng.Normal();
        const double high = rng.Flip(0.3) ? low : low + width * rng.Uniform(0, 1);
        matrix->Add(Ball::Interval(low, high), Ball::FromDouble(rng.Flip() ? low : high));
      }
    }
    Check(e, a, b, 128, round % 2 == 0);
  }
}

TEST(BallGemm, EqualElementsAddUp) {
  const Extents e{4, 4, 1500};
  const BallContext exact(kExact), coarse(128);
  Matrix a, b;
  for (int64_t i = 0; i < 4 * e.k; ++i) {
    for (Matrix* matrix : {&a, &b}) {
      const auto third = [](const BallContext& context) {
        const BallScope scope(context);
        return Ball::FromInt(1) / Ball::FromInt(3);
      };
      matrix->Add(third(coarse), third(exact));
    }
  }
  EXPECT_LE(Check(e, a, b, 128, false), 4);
}

TEST(BallGemm, IntegersThatFitAreExact) {
  Rng rng(6);
  RecordProperty("seed", 6);
  const Extents e{8, 8, 64};
  Matrix a, b;
  for (Matrix* matrix : {&a, &b}) {
    for (int64_t i = 0; i < 512; ++i) {
      const Ball number = Ball::FromInt(rng.Between(-1'000'000'000'000, 1'000'000'000'000));
      matrix->Add(number, number);
    }
  }
  EXPECT_EQ(Check(e, a, b, 128, false), -std::numeric_limits<double>::infinity());
}

/// Weights of few bits are cut into fewer slices than the other operand; with `rounded` both have
/// the same number.
TEST(BallProducts, EncloseRowsByGatheredColumns) {
  Rng rng(7);
  RecordProperty("seed", 7);
  constexpr int64_t kRows = 14, kBlock = 5, kDepth = 37, kImage = 60, kColumns = 6;
  for (const int precision : {40, 128, 300}) {
    for (const bool rounded : {false, true}) {
      const Matrix weights = Draw(rng, kRows * kDepth, 6, rounded, precision);
      const Matrix image = Draw(rng, kImage, 12, precision != 40, precision);
      std::vector<int64_t> from;  // of each element of the columns; -1: padding
      for (int64_t i = 0; i < kDepth * kColumns; ++i) from.push_back(rng.Between(-1, kImage - 1));
      const auto gather = [&](const float* plane, double* columns) {
        for (size_t i = 0; i < from.size(); ++i) columns[i] = from[i] < 0 ? 0 : plane[from[i]];
      };
      std::vector<Ball> got(kRows * kColumns);
      const BallContext exact(kExact), coarse(precision);
      {
        const BallScope scope(coarse);
        const auto products = BallProducts::Make(weights.balls.data(), kRows, kDepth, kBlock,
                                                 image.balls.data(), kImage);
        ASSERT_NE(products, nullptr);
        for (int64_t block = 0; block * kBlock < kRows; ++block) {
          products->Multiply(block, kColumns, gather, got.data() + block * kBlock * kColumns,
                             kColumns);
        }
      }
      const BallScope scope(exact);
      double largest = 0;
      for (const Ball& x : image.points) largest = std::max(largest, x.Magnitude().second);
      for (int64_t i = 0; i < kRows; ++i) {
        for (int64_t j = 0; j < kColumns; ++j) {
          Ball sum;
          double weight = 0;
          for (int64_t p = 0; p < kDepth; ++p) {
            const Ball& x = weights.points[static_cast<size_t>(i * kDepth + p)];
            weight = std::max(weight, x.Magnitude().second);
            if (const int64_t at = from[static_cast<size_t>(p * kColumns + j)]; at >= 0)
              sum += x * image.points[static_cast<size_t>(at)];
          }
          const Ball& enclosure = got[static_cast<size_t>(i * kColumns + j)];
          EXPECT_TRUE(Contains(enclosure, sum)) << i << ", " << j << " at " << precision;
          EXPECT_LE(enclosure.Log2Radius(), std::log2(weight * largest * kDepth) - precision + 4);
        }
      }
    }
  }
}

TEST(BallProducts, AreNotMadeOfWhatHasNoSlices) {
  const BallContext context(128);
  const BallScope scope(context);
  const std::vector<Ball> rows(32, Ball::FromInt(3));
  std::vector<Ball> image(8, Ball::FromInt(2));
  EXPECT_NE(BallProducts::Make(rows.data(), 8, 4, 8, image.data(), 8), nullptr);
  EXPECT_EQ(BallProducts::Make(rows.data(), 8, 4, 2, image.data(), 8), nullptr);  // few rows
  image[3] = Ball::Indeterminate();
  EXPECT_EQ(BallProducts::Make(rows.data(), 8, 4, 8, image.data(), 8), nullptr);
}

TEST(BallProducts, NumbersAreTheirBalls) {
  Rng rng(9);
  RecordProperty("seed", 9);
  constexpr int64_t kRows = 6, kDepth = 20, kColumns = 10;
  const Matrix image = Draw(rng, kDepth * kColumns, 6, true, 128);
  std::vector<double> numbers;
  std::vector<Ball> balls;
  for (int64_t i = 0; i < kRows * kDepth; ++i) {
    numbers.push_back(rng.Flip(0.1) ? 0 : std::ldexp(rng.Normal(), -static_cast<int>(i % 30)));
    balls.push_back(Ball::FromDouble(numbers.back()));
  }
  const auto copy = [](const float* plane, double* columns) {
    std::copy_n(plane, kDepth * kColumns, columns);
  };
  const BallContext context(128);
  const BallScope scope(context);
  const auto products = [&](const auto* left) {
    std::vector<Ball> result(kRows * kColumns);
    BallProducts::Make(left, kRows, kDepth, kRows, image.balls.data(), kDepth * kColumns)
        ->Multiply(0, kColumns, copy, result.data(), kColumns);
    return result;
  };
  const std::vector<Ball> a = products(numbers.data()), b = products(balls.data());
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].Middle(), b[i].Middle()) << i;
    EXPECT_EQ(a[i].Log2Radius(), b[i].Log2Radius()) << i;
  }
  numbers[7] = std::numeric_limits<double>::infinity();
  EXPECT_EQ(BallProducts::Make(numbers.data(), kRows, kDepth, kRows, image.balls.data(),
                               kDepth * kColumns),
            nullptr);
}

/// The images are longer than the part that one job cuts.
TEST(BallProducts, LargeImagesAreCutInParts) {
  Rng rng(8);
  RecordProperty("seed", 8);
  constexpr int64_t kImage = 40'000, kColumns = kImage / 4;
  const Matrix image = Draw(rng, kImage, 3, true, 64);
  const std::vector<Ball> ones(16, Ball::FromInt(1));
  std::vector<Ball> got(4 * kColumns);
  const BallContext context(64);
  const BallScope scope(context);
  const auto copy = [](const float* plane, double* columns) {
    std::copy_n(plane, kImage, columns);
  };
  BallProducts::Make(ones.data(), 4, 4, 4, image.balls.data(), kImage)
      ->Multiply(0, kColumns, copy, got.data(), kColumns);
  const BallContext exact(kExact);
  const BallScope wide(exact);
  for (size_t j = 0; j < kColumns; ++j) {
    Ball sum;
    for (size_t p = 0; p < 4; ++p) sum += image.points[p * kColumns + j];
    for (size_t i = 0; i < 4; ++i)
      ASSERT_TRUE(Contains(got[i * kColumns + j], sum)) << i << ", " << j;
  }
}

TEST(BallGemm, WhatIsNotFiniteStaysSo) {
  const BallContext context(128);
  const BallScope scope(context);
  std::vector<Ball> a(16, Ball::FromInt(1)), b(16, Ball::FromInt(2)), c(16);
  a[5] = Ball::FromDouble(std::numeric_limits<double>::infinity());
  b[2] = Ball::Indeterminate();
  BallGemm(4, 4, 4, a.data(), 4, b.data(), 4, c.data(), 4, false);
  for (size_t i = 0; i < 4; ++i) {
    for (size_t j = 0; j < 4; ++j) EXPECT_EQ(c[i * 4 + j].IsFinite(), i != 1 && j != 2);
  }
  EXPECT_EQ(c[0].Middle(), 8);
}

}  // namespace
}  // namespace mendel
