#include "graph/tensor.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace mendel {
namespace {

TEST(Tensor, SixteenBitFormatsRoundTripEveryPattern) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const uint16_t pattern = static_cast<uint16_t>(bits);
    if (std::isnan(HalfToFloat(pattern))) {
      EXPECT_TRUE(std::isnan(HalfToFloat(FloatToHalf(HalfToFloat(pattern)))));
    } else {
      EXPECT_EQ(FloatToHalf(HalfToFloat(pattern)), pattern);
    }
    if (!std::isnan(BFloat16ToFloat(pattern))) {
      EXPECT_EQ(FloatToBFloat16(BFloat16ToFloat(pattern)), pattern);
    }
  }
}

TEST(Tensor, AllFinite) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const DType dtype : {DType::kF64, DType::kF32, DType::kF16, DType::kBF16}) {
    for (const double odd : {kInfinity, -kInfinity, std::nan("")}) {
      for (int64_t place = 0; place < 40; ++place) {
        std::vector<double> values(40, -1.5);
        EXPECT_TRUE(Tensor::FromDoubles({dtype, {40}}, values).AllFinite());
        values[static_cast<size_t>(place)] = odd;
        EXPECT_FALSE(Tensor::FromDoubles({dtype, {40}}, values).AllFinite()) << place;
      }
    }
  }
  EXPECT_TRUE(Tensor::Scalar(DType::kF32, 3.4e38).AllFinite());
  EXPECT_TRUE(Tensor::Scalar(DType::kF16, 65504).AllFinite());
  EXPECT_TRUE(Tensor::Ints({INT64_MIN, 0x7ff0000000000000}).AllFinite());
  EXPECT_TRUE(Tensor::Filled({DType::kF32, {0}}, 0).AllFinite());
}

TEST(Tensor, RoundsToNearestEven) {
  EXPECT_EQ(RoundTo(DType::kF16, 2049), 2048);
  EXPECT_EQ(RoundTo(DType::kF16, 2051), 2052);
  EXPECT_EQ(RoundTo(DType::kF16, 65520), std::numeric_limits<double>::infinity());
  EXPECT_EQ(RoundTo(DType::kBF16, 257), 256);
  EXPECT_EQ(RoundTo(DType::kI32, 4294967297.0), 1);
}

TEST(Tensor, KeepsLargeIntegersExact) {
  const Tensor tensor = Tensor::Ints({std::numeric_limits<int64_t>::max(), -3});
  EXPECT_EQ(tensor.IntAt(0), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(tensor.IntAt(1), -3);
}

}  // namespace
}  // namespace mendel
