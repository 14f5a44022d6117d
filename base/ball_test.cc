#include "base/ball.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "base/ball_functions.h"
#include "base/parallel.h"
#include "base/random.h"

namespace mendel {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

class BallTest : public testing::Test {
 protected:
  BallContext context_{128};
  BallScope scope_{context_};
};

TEST_F(BallTest, DoublesAndIntegersAreExact) {
  for (double value : {0.0, -0.0, 1.0, 0.1, -3e-310, 1.7e308, kInfinity, -kInfinity}) {
    const Ball ball = Ball::FromDouble(value);
    EXPECT_EQ(ball.Middle(), value);
    EXPECT_EQ(ball.IsExact(), std::isfinite(value));
  }
  EXPECT_FALSE(Ball::FromDouble(std::nan("")).IsFinite());
  const int64_t large = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(Ball::FromInt(large).AsInteger(), large);
  EXPECT_EQ(Ball::FromDouble(0.5).AsInteger(), std::nullopt);
  EXPECT_EQ(Ball::FromDouble(0x1p63).AsInteger(), std::nullopt);
  EXPECT_EQ(Ball::Interval(1, 2).AsInteger(), std::nullopt);
}

TEST_F(BallTest, CopiesMovesAndSwapsKeepTheValue) {
  const Ball third = Ball::FromInt(1) / Ball::FromInt(3);
  Ball copy = third;
  Ball moved = std::move(copy);
  copy = moved;
  copy = *&copy;
  std::vector<Ball> many(10, copy);
  many.resize(1000, moved);
  for (const Ball& ball : many) EXPECT_TRUE(Contains(ball, third) && Contains(third, ball));
}

TEST_F(BallTest, ThirdTimesThreeEnclosesOneTightly) {
  const Ball one = Ball::FromInt(1) / Ball::FromInt(3) * Ball::FromInt(3);
  EXPECT_FALSE(one.IsExact());
  EXPECT_TRUE(Contains(one, Ball::FromInt(1)));
  EXPECT_LT(one.Log2Radius(), -120);
  EXPECT_EQ(one.Middle(), 1);
  EXPECT_LT(one.ErrorOfMiddle(), 1e-36);
}

TEST_F(BallTest, TinyTermsAreNotLost) {
  const Ball x = Ball::FromDouble(1);
  const Ball y = x + Ball::FromDouble(0x1p-100);
  EXPECT_TRUE(SurelyLess(x, y));
  EXPECT_EQ(y.Middle(), 1);
  EXPECT_GE(y.ErrorOfMiddle(), 0x1p-100);
  EXPECT_LE(y.ErrorOfMiddle(), 0x1.01p-100);
}

TEST_F(BallTest, DivisionByABallAroundZeroEnclosesEverything) {
  const Ball quotient = Ball::FromInt(1) / Ball::Interval(-1, 1);
  EXPECT_FALSE(quotient.IsFinite());
  EXPECT_TRUE(Contains(quotient, Ball::FromDouble(1e300)));
  EXPECT_EQ(quotient.ErrorOfMiddle(), kInfinity);
  EXPECT_FALSE((quotient * Ball()).IsFinite() && (quotient * Ball()).IsExact());
}

TEST_F(BallTest, IntervalsAndHullsHoldTheirEnds) {
  const Ball interval = Ball::Interval(0.1, 3e300);
  EXPECT_TRUE(Contains(interval, Ball::FromDouble(0.1)));
  EXPECT_TRUE(Contains(interval, Ball::FromDouble(3e300)));
  const auto [low, high] = Ball::Interval(0.1, 0.7).Bounds();
  EXPECT_LE(low, 0.1);
  EXPECT_GE(high, 0.7);
  EXPECT_NEAR(low, 0.1, 1e-8);  // radii have 30 bits
  EXPECT_NEAR(high, 0.7, 1e-8);
  const Ball hull = Hull(Ball::FromInt(-1), Ball::FromInt(5));
  EXPECT_TRUE(Contains(hull, Ball::FromInt(-1)) && Contains(hull, Ball::FromInt(5)));
  EXPECT_FALSE(Hull(hull, Ball::Indeterminate()).IsFinite());
}

TEST_F(BallTest, MagnitudesAreBoundedOnBothSides) {
  EXPECT_EQ(Ball::FromInt(-3).Magnitude(), std::pair(3.0, 3.0));
  EXPECT_EQ(Ball::Interval(-3, 1).Magnitude().first, 0);
  EXPECT_GE(Ball::Interval(-3, 1).Magnitude().second, 3);
  EXPECT_EQ(Ball::Indeterminate().Magnitude(), std::pair(0.0, kInfinity));
  const Ball tiny = Ball::FromDouble(0x1p-1000) * Ball::FromDouble(0x1p-1000);
  EXPECT_EQ(tiny.Magnitude().first, 0);
  EXPECT_GT(tiny.Magnitude().second, 0);
}

TEST_F(BallTest, OpenComparisonsFailTheContextAndDecidedOnesDoNot) {
  EXPECT_LT(Ball::FromInt(1), Ball::FromInt(2));
  EXPECT_FALSE(Ball::FromInt(2) < Ball::FromInt(2));
  EXPECT_EQ(Ball::FromInt(2), Ball::FromInt(2));
  EXPECT_NE(Ball::FromInt(2), Ball::FromInt(3));
  EXPECT_EQ(context_.failure(), "");
  EXPECT_LT(Ball::Interval(0, 2), Ball::Interval(1, 4));
  EXPECT_NE(context_.failure(), "");
  EXPECT_FALSE(context_.failed_for_good());
  context_.Fail("no enclosure of Zeta", true);
  EXPECT_EQ(context_.failure(), "no enclosure of Zeta");
  EXPECT_TRUE(context_.failed_for_good());
}

TEST_F(BallTest, MaximaTakeInfinitiesAndOpenOrders) {
  const Ball low = Ball::FromDouble(-kInfinity);
  EXPECT_EQ(balls::Max(low, Ball::FromInt(7)).AsInteger(), 7);
  EXPECT_EQ(balls::Min(-low, Ball::FromInt(7)).AsInteger(), 7);
  const Ball open = balls::Max(Ball::Interval(0, 2), Ball::FromInt(1));
  EXPECT_TRUE(Contains(open, Ball::FromInt(1)) && Contains(open, Ball::FromInt(2)));
  EXPECT_FALSE(balls::Max(Ball::Indeterminate(), Ball()).IsFinite());
  EXPECT_EQ(balls::Abs(Ball::FromInt(-4)).AsInteger(), 4);
  EXPECT_TRUE(Contains(balls::Abs(Ball::Interval(-3, 1)), Ball::FromInt(3)));
  EXPECT_TRUE(Contains(balls::Abs(Ball::Interval(-3, 1)), Ball()));
}

TEST_F(BallTest, StepsRoundAsTheirNamesSay) {
  const auto at = [](Ball (*step)(const Ball&), double x) {
    return step(Ball::FromDouble(x)).AsInteger();
  };
  EXPECT_EQ(at(balls::Floor, -1.5), -2);
  EXPECT_EQ(at(balls::Ceil, -1.5), -1);
  EXPECT_EQ(at(balls::Trunc, -1.5), -1);
  EXPECT_EQ(at(balls::Trunc, 1.5), 1);
  for (double x : {-3.0, -2.5, -1.5, -0.5, -0.25, 0.0, 0.5, 1.5, 2.5, 2.75, 1e15 + 0.5}) {
    EXPECT_EQ(at(balls::RoundToEven, x), static_cast<int64_t>(std::nearbyint(x))) << x;
  }
  const Ball near_half = balls::RoundToEven(Ball::Interval(0.4, 0.6));
  EXPECT_TRUE(Contains(near_half, Ball()) && Contains(near_half, Ball::FromInt(1)));
  EXPECT_FALSE(balls::Floor(Ball::FromDouble(kInfinity)).IsFinite());
  EXPECT_FALSE(balls::Floor(balls::Exp(Ball::FromDouble(1e18)))
                   .IsFinite());  // too large for an integer: not enclosed, no crash
}

TEST_F(BallTest, FunctionsMatchTheLibraryAndKnowTheirDomains) {
  Rng rng(1);
  RecordProperty("seed", 1);
  for (int i = 0; i < 200; ++i) {
    const double x = rng.Uniform(-3, 3);
    const Ball ball = Ball::FromDouble(x);
    EXPECT_NEAR(balls::Exp(ball).Middle(), std::exp(x), 1e-13);
    EXPECT_NEAR(balls::Erf(ball).Middle(), std::erf(x), 1e-13);
    EXPECT_NEAR(balls::Erfc(ball).Middle(), std::erfc(x), 1e-13);
    EXPECT_NEAR(balls::Tanh(ball).Middle(), std::tanh(x), 1e-13);
    EXPECT_NEAR(balls::Pow(balls::Abs(ball), Ball::FromDouble(0.3)).Middle(),
                std::pow(std::abs(x), 0.3), 1e-13);
    EXPECT_NEAR(balls::Pow(ball, Ball::FromInt(3)).Middle(), x * x * x, 1e-13);
  }
  for (const Ball& undefined :
       {balls::Log(Ball::FromInt(-1)), balls::Sqrt(Ball::FromInt(-1)), balls::Rsqrt(Ball()),
        balls::Acosh(Ball()), balls::Log(Ball::Indeterminate()),
        balls::Log(Ball::FromDouble(kInfinity))}) {
    EXPECT_FALSE(undefined.IsFinite());
  }
  EXPECT_TRUE(balls::Exp(Ball::FromDouble(-kInfinity)).IsExact());
  EXPECT_TRUE(Contains(balls::Exp(Ball::Interval(-1, 1)), Ball::FromInt(2)));
}

TEST_F(BallTest, ProductsOfMatricesEncloseTheExactOnes) {
  Rng rng(2);
  RecordProperty("seed", 2);
  for (const auto& [m, n, k] :
       {std::array{1, 1, 0}, std::array{3, 5, 7}, std::array{2, 19, 33}, std::array{4, 8, 1}}) {
    const size_t rows = static_cast<size_t>(m), columns = static_cast<size_t>(n),
                 depth = static_cast<size_t>(k);
    std::vector<Ball> a(rows * depth), b(depth * columns), c(rows * columns, Ball::FromInt(7));
    const auto draw = [&] {
      if (rng.Flip(0.3)) return Ball();
      const Ball numerator = Ball::FromInt(rng.Between(-9, 9));
      return numerator / Ball::FromInt(rng.Between(1, 4));
    };
    for (Ball& value : a) value = draw();
    for (Ball& value : b) value = draw();
    for (const bool accumulate : {true, false}) {
      std::vector<Ball> got = c;
      BallGemm(m, n, k, a.data(), k, b.data(), n, got.data(), n, accumulate);
      for (size_t i = 0; i < rows; ++i) {
        for (size_t j = 0; j < columns; ++j) {
          Ball sum = Ball::FromInt(accumulate ? 7 : 0);
          for (size_t p = 0; p < depth; ++p) sum += a[i * depth + p] * b[p * columns + j];
          EXPECT_TRUE(MayBeEqual(got[i * columns + j], sum));
          EXPECT_LT(got[i * columns + j].Log2Radius(), -110);
        }
      }
    }
  }
}

TEST_F(BallTest, ThreadsShareAContext) {
  std::vector<Ball> results(64);
  ParallelFor(64, [&](int64_t i) {
    const BallScope scope(context_);
    results[static_cast<size_t>(i)] = balls::Exp(Ball::FromInt(i));
    if (i == 63 && Ball::Interval(0, 1) < Ball::Interval(0, 1)) results[0] = Ball();
  });
  for (size_t i = 0; i < results.size(); ++i) EXPECT_TRUE(results[i].IsFinite());
  EXPECT_NE(context_.failure(), "");
}

TEST_F(BallTest, NumbersWithHugeExponentsOutliveTheirThreads) {
  for (int round = 0; round < 3; ++round) {
    std::vector<Ball> results(256);
    ParallelFor(256, [&](int64_t i) {
      const BallScope scope(context_);
      results[static_cast<size_t>(i)] =
          balls::Exp(Ball::FromDouble(1e25 * static_cast<double>(i + 1)));
    });
    for (size_t i = 1; i < results.size(); ++i) {
      EXPECT_TRUE(SurelyLess(results[i - 1], results[i]));
      results[i - 1] = results[i] * results[i];
    }
    EXPECT_EQ(results[0].Middle(), kInfinity);
  }
}

}  // namespace
}  // namespace mendel
