#include "client/comparison/value_errors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace mendel {
namespace {

using ::testing::DoubleEq;
using ::testing::DoubleNear;
using ::testing::ElementsAre;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

Tensor Floats(Shape shape, const std::vector<double>& values) {
  return Tensor::FromDoubles({DType::kF64, std::move(shape)}, values);
}

TEST(ValueErrors, EqualValuesHaveNone) {
  const Tensor value = Floats({2, 2}, {1, std::nan(""), kInfinity, -4});
  const ValueErrors errors = CompareElements(value, value, 0);
  EXPECT_EQ(errors.largest, 0);
  EXPECT_EQ(errors.mean, 0);
  EXPECT_EQ(errors.unequal, 0);
  EXPECT_FALSE(errors.first.has_value());
}

TEST(ValueErrors, TheFirstElementBeyondTheToleranceIsNamed) {
  const ValueErrors errors = CompareElements(Floats({2, 3}, {8, 0, 0, 1, 2, 3}),
                                             Floats({2, 3}, {8, 0.5, 0, 1, 4, 9}), 0.1);
  ASSERT_TRUE(errors.first.has_value());  // 0.5 is within a tenth of 8
  EXPECT_THAT(errors.first->index, ElementsAre(1, 1));
  EXPECT_THAT(errors.first->want, DoubleEq(2));
  EXPECT_THAT(errors.first->have, DoubleEq(4));
  EXPECT_THAT(errors.largest, DoubleEq(6));
  EXPECT_THAT(errors.relative, DoubleEq(0.75));
  EXPECT_THAT(errors.mean, DoubleNear(8.5 / 6, 1e-12));
  EXPECT_EQ(errors.unequal, 3);
}

TEST(ValueErrors, AnElementThatOnlyOneProgramHasFiniteIsBeyondEveryTolerance) {
  const ValueErrors errors =
      CompareElements(Floats({3}, {1, 2, 3}), Floats({3}, {1, std::nan(""), 4}), 100);
  EXPECT_EQ(errors.largest, kInfinity);
  EXPECT_THAT(errors.mean, DoubleEq(0.5));
  ASSERT_TRUE(errors.first.has_value());
  EXPECT_THAT(errors.first->index, ElementsAre(1));
}

TEST(ValueErrors, IntegersMayDifferInAShareOfTheElements) {
  const Tensor want = Tensor::Ints({1, 2, 3, 4}), have = Tensor::Ints({1, 2, 7, 4});
  EXPECT_FALSE(CompareElements(want, have, 0.25).first.has_value());
  const ValueErrors errors = CompareElements(want, have, 0.2);
  ASSERT_TRUE(errors.first.has_value());
  EXPECT_THAT(errors.first->index, ElementsAre(2));
  EXPECT_THAT(errors.largest, DoubleEq(4));
}

TEST(ValueErrors, IntegersBeyondDoublesAreExact) {
  const int64_t large = (int64_t{1} << 53) + 1;
  const ValueErrors errors = CompareElements(Tensor::Ints({large}), Tensor::Ints({large - 1}), 0);
  EXPECT_EQ(errors.unequal, 1);
  EXPECT_TRUE(errors.first.has_value());
}

TEST(ValueErrors, ScalarsAndEmptyValues) {
  EXPECT_EQ(CompareElements(Floats({0, 3}, {}), Floats({0, 3}, {}), 0).mean, 0);
  const ValueErrors errors = CompareElements(Floats({}, {2}), Floats({}, {3}), 0);
  ASSERT_TRUE(errors.first.has_value());
  EXPECT_TRUE(errors.first->index.empty());
}

}  // namespace
}  // namespace mendel
