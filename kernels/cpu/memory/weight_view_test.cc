#include "kernels/cpu/memory/weight_view.h"

#include <cfloat>
#include <cmath>
#include <limits>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/cpu/threads.h"

namespace mendel::cpu {
namespace {

constexpr float kLeast = FLT_MIN;
constexpr float kSubnormal = FLT_MIN / 4;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST(WeightView, ScaledWeightsAreNeverSubnormal) {
  EXPECT_EQ(ScaledWeight(kSubnormal, 1.0), 0.0f);
  EXPECT_EQ(ScaledWeight(-kSubnormal, 1.0), 0.0f);
  EXPECT_EQ(ScaledWeight(kLeast, 0.5), 0.0f);
  EXPECT_EQ(ScaledWeight(kSubnormal, 4.0), kLeast) << "the product decides";
  EXPECT_EQ(ScaledWeight(-kLeast, 1.0), -kLeast);
  EXPECT_EQ(ScaledWeight(kInfinity, 1.0), kInfinity);
  EXPECT_TRUE(std::isnan(ScaledWeight(std::nanf(""), 1.0)));
}

TEST(WeightView, StoredWeightsLoseSubnormalNumbersInACopy) {
  const ThreadScope scope(1);
  const std::vector<double> values = {1, 1e-40, -1e-39, 0, -2};
  const Tensor weights = Tensor::FromDoubles({DType::kF32, {5}}, values);
  EXPECT_EQ(WithoutSubnormals(weights).ToDoubles(), (std::vector<double>{1, 0, 0, 0, -2}));
  EXPECT_NE(weights.DoubleAt(1), 0) << "the original stays";
}

TEST(WeightView, OtherWeightsAreNotCopied) {
  const ThreadScope scope(1);
  const Tensor normal = Tensor::Filled({DType::kF32, {100}}, 0.5);
  EXPECT_EQ(WithoutSubnormals(normal).bytes().data(), normal.bytes().data());
  const Tensor halves = Tensor::Filled({DType::kF16, {4}}, 1e-7);
  EXPECT_EQ(WithoutSubnormals(halves).bytes().data(), halves.bytes().data());
}

}  // namespace
}  // namespace mendel::cpu
