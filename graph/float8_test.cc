// The 8-bit floats against their definition: the nearest number of a table, ties to even bits.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "graph/tensor.h"

namespace mendel {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

struct Format {
  DType dtype;
  float least, largest;  ///< positive numbers
  bool infinite, signless_zero;
};

constexpr Format kFormats[] = {
    {DType::kF8E4M3FN, 0x1p-9f, 448, false, false},
    {DType::kF8E4M3FNUZ, 0x1p-10f, 240, false, true},
    {DType::kF8E5M2, 0x1p-16f, 57344, true, false},
    {DType::kF8E5M2FNUZ, 0x1p-17f, 57344, false, true},
};

class Float8 : public testing::TestWithParam<Format> {
 protected:
  float Number(int bits) const {
    return Float8ToFloat(GetParam().dtype, static_cast<uint8_t>(bits));
  }
  float Rounded(float value) const {
    return Float8ToFloat(GetParam().dtype, FloatToFloat8(GetParam().dtype, value));
  }
  /// The bits of the positive finite numbers and zero, which grow with them.
  std::vector<int> Finite() const {
    std::vector<int> bits;
    for (int k = 0; k < 128; ++k) {
      if (std::isfinite(Number(k))) bits.push_back(k);
    }
    return bits;
  }
};

TEST_P(Float8, HasTheNumbersOfItsDefinition) {
  const std::vector<int> bits = Finite();
  EXPECT_EQ(Number(0), 0.0f);
  EXPECT_EQ(Number(1), GetParam().least);
  EXPECT_EQ(Number(bits.back()), GetParam().largest);
  EXPECT_EQ(LargestFloat8(GetParam().dtype), static_cast<double>(GetParam().largest));
  for (size_t k = 1; k < bits.size(); ++k) EXPECT_LT(Number(bits[k - 1]), Number(bits[k]));
}

TEST_P(Float8, KeepsItsOwnNumbers) {
  for (int bits = 0; bits < 256; ++bits) {
    const float number = Number(bits);
    if (std::isnan(number)) {
      EXPECT_TRUE(std::isnan(Rounded(number)));
    } else {
      EXPECT_EQ(FloatToFloat8(GetParam().dtype, number), bits);
    }
  }
}

TEST_P(Float8, RoundsToTheNearestNumberAndTiesToEvenBits) {
  const std::vector<int> bits = Finite();
  for (size_t k = 1; k < bits.size(); ++k) {
    const float low = Number(bits[k - 1]), high = Number(bits[k]);
    const float middle = (low + high) / 2;  // exact
    const float even = bits[k] % 2 == 0 ? high : low;
    for (const float sign : {1.0f, -1.0f}) {
      EXPECT_EQ(Rounded(sign * middle), sign * even);
      EXPECT_EQ(Rounded(sign * std::nextafter(middle, 0.0f)), sign * low);
      EXPECT_EQ(Rounded(sign * std::nextafter(middle, kInfinity)), sign * high);
    }
  }
}

TEST_P(Float8, HasNoSaturation) {
  const float largest = GetParam().largest;
  const float step = largest - Number(Finite().back() - 1);
  EXPECT_EQ(Rounded(std::nextafter(largest + step / 2, 0.0f)), largest);
  for (const float beyond : {largest + step, 1e30f, kInfinity}) {
    for (const float sign : {1.0f, -1.0f}) {
      const float rounded = Rounded(sign * beyond);
      if (GetParam().infinite) {
        EXPECT_EQ(rounded, sign * kInfinity);
      } else {
        EXPECT_TRUE(std::isnan(rounded)) << sign * beyond;
      }
    }
  }
}

TEST_P(Float8, HasANegativeZeroOrNone) {
  EXPECT_EQ(std::signbit(Rounded(-0.0f)), !GetParam().signless_zero);
  EXPECT_EQ(std::signbit(Rounded(-GetParam().least / 4)), !GetParam().signless_zero);
}

INSTANTIATE_TEST_SUITE_P(Formats, Float8, testing::ValuesIn(kFormats),
                         [](const auto& info) { return std::string(DTypeName(info.param.dtype)); });

TEST(Float8Tensor, HoldsThemAndKnowsWhichAreFinite) {
  const Tensor tensor =
      Tensor::FromDoubles({DType::kF8E5M2, {4}}, std::vector<double>{1, 3, -7, 2});
  EXPECT_EQ(tensor.ToDoubles(), (std::vector<double>{1, 3, -7, 2}));
  EXPECT_TRUE(tensor.AllFinite());
  EXPECT_FALSE(Tensor::Scalar(DType::kF8E5M2, 1e9).AllFinite());
  EXPECT_FALSE(Tensor::Scalar(DType::kF8E4M3FN, 1e9).AllFinite());
}

TEST(UnsignedWord, TensorsHoldNumbersBeyondSignedOnes) {
  const Tensor tensor =
      Tensor::FromDoubles({DType::kU64, {3}}, std::vector<double>{0x1p63, 1e30, -1});
  EXPECT_EQ(tensor.DoubleAt(0), 0x1p63);
  EXPECT_EQ(tensor.As<uint64_t>()[1], ~uint64_t{0});
  EXPECT_EQ(tensor.As<uint64_t>()[2], ~uint64_t{0});
}

}  // namespace
}  // namespace mendel
