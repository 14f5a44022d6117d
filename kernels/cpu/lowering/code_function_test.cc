// Functions of codes as tables, sums of codes, and pools of codes, against the definitions of their
// operators.

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "base/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/cpu/kernels/code_table.h"
#include "kernels/cpu/testing/quantized_net.h"

namespace mendel::cpu {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;
using Net = QuantizedNet;

/// x * clip(x + 3), with codes after each step: two ways lead from the first codes to the last.
ValueId QuantizedSwish(Net& net, ValueId codes, ValueId* between = nullptr) {
  const ValueId x = net.Dequantized(codes, 1.0 / 16, 101);
  const ValueId shifted = net.Op("Add", {x, net.Number(DType::kF32, 3)});
  ValueId gate = net.Op("Clip", {shifted}, {{"min", 0.0}, {"max", 6.0}});
  gate = net.Quantized(gate, 1.0 / 32, 0, DType::kU8);
  if (between != nullptr) *between = gate;
  const ValueId y = net.Op("Mul", {x, net.Dequantized(gate, 1.0 / 32, 0)});
  return net.Quantized(y, 0.25, -3, DType::kI8);
}

TEST(CodeFunction, FunctionsOfCodesAreTables) {
  for (const DType dtype : kCodeTypes) {
    for (const Shape& shape : {Shape{2, 3, 5, 7}, Shape{1}, Shape{1500}}) {
      Net net;
      const auto kernels = net.Check(QuantizedSwish(net, net.Input(dtype, shape)));
      EXPECT_THAT(kernels, testing::ElementsAre("table of codes"));
    }
  }
}

/// Codes in between are computed when they are read.
TEST(CodeFunction, CodesWithinAFunctionMayBeRead) {
  Net net;
  ValueId gate;
  const ValueId codes = QuantizedSwish(net, net.Input(DType::kU8, {3, 400}), &gate);
  net.builder.Output("gate", gate);
  const ValueId last = net.Quantized(net.Dequantized(codes, 0.25, -3), 0.5, 7, DType::kU8);
  EXPECT_THAT(net.Check(last), testing::ElementsAre("table of codes", "table of codes"));
}

/// A value in between that is no code keeps its nodes.
TEST(CodeFunction, FloatsWithinAFunctionMayBeRead) {
  Net net;
  const ValueId x = net.Dequantized(net.Input(DType::kU8, {3, 400}), 0.25, 9);
  const ValueId tanh = net.Op("Tanh", {x});
  net.builder.Output("sum", net.Op("Add", {tanh, net.Input(DType::kF32, {3, 400})}));
  const auto kernels = net.Check(net.Quantized(tanh, 1.0 / 64, 3, DType::kU8));
  EXPECT_THAT(kernels, Contains("table of codes"));
  EXPECT_EQ(kernels.size(), 2u) << testing::PrintToString(kernels);
}

/// Two tensors, or one number a channel, are no table.
TEST(CodeFunction, OtherFunctionsAreNoTables) {
  Net two;
  const ValueId x = two.Dequantized(two.Input(DType::kU8, {3, 400}), 0.25, 9);
  const ValueId y = two.Dequantized(two.Input(DType::kU8, {3, 400}), 0.5, 1);
  EXPECT_THAT(two.Check(two.Quantized(two.Op("Mul", {x, y}), 2, 3, DType::kU8)),
              testing::ElementsAre("tile chain"));
  Net channels;
  const ValueId scale = channels.Weights(DType::kF32, {400}, 1, 9, 0.125);
  const ValueId z = channels.Dequantized(channels.Input(DType::kI8, {3, 400}), scale, {});
  EXPECT_THAT(channels.Check(channels.Quantized(z, 2, 3, DType::kU8)),
              testing::ElementsAre("tile chain"));
}

/// Codes between two convolutions in f32 lie in the layout that those like.
TEST(CodeFunction, FunctionsOfCodesBetweenConvolutions) {
  for (const int64_t channels : {16, 20}) {
    Net net;
    const auto conv = [&](ValueId x) {
      return net.Op(
          "Conv", {x, net.Weights(DType::kF32, {channels, channels, 3, 3}, -2, 2, 0.25)},
          {{"pads", Ints{1, 1, 1, 1}}, {"strides", Ints{1, 1}}, {"dilations", Ints{1, 1}}});
    };
    const ValueId x = net.Input(DType::kF32, {1, channels, 9, 9});
    const ValueId codes = net.Quantized(conv(x), 0.5, 101, DType::kU8);
    const ValueId y = net.Dequantized(QuantizedSwish(net, codes), 0.25, -3);
    EXPECT_THAT(net.Check(conv(y)), Contains("table of codes"));
  }
}

TEST(CodeFunction, TablesTranslateEveryCode) {
  Rng rng(7);
  std::array<uint8_t, 256> table;
  for (uint8_t& byte : table) byte = static_cast<uint8_t>(rng.Below(256));
  for (const int64_t count : {0, 1, 31, 32, 33, 256, 1000}) {
    std::vector<uint8_t> from, to(static_cast<size_t>(count) + 1, 77), want;
    for (int64_t k = 0; k < count; ++k) from.push_back(static_cast<uint8_t>(k * 37 + k / 256));
    for (const uint8_t code : from) want.push_back(table[code]);
    want.push_back(77);  // nothing is written behind the end
    Translate(from.data(), count, table, to.data());
    EXPECT_EQ(to, want);
  }
}

TEST(CodeFunction, SumsOfQuantizedValuesAreOnePass) {
  for (const DType a : kCodeTypes) {
    for (const DType b : kCodeTypes) {
      for (const Shape& shape : {Shape{2, 3, 5, 7}, Shape{1, 64, 9, 9}, Shape{1}, Shape{1500}}) {
        Net net;
        const ValueId x = net.Dequantized(net.Input(a, shape), 0.25, 7);
        const ValueId y = net.Dequantized(net.Input(b, shape), 0.5, -0);
        const auto kernels = net.Check(net.Quantized(net.Op("Add", {x, y}), 0.75, 3, a));
        EXPECT_THAT(kernels, testing::ElementsAre("sum of codes"));
      }
    }
  }
}

Attributes PoolOf(int64_t kernel, int64_t stride, int64_t pad) {
  return {{"kernel_shape", Ints{kernel, kernel}},
          {"strides", Ints{stride, stride}},
          {"dilations", Ints{1, 1}},
          {"pads", Ints{pad, pad, pad, pad}}};
}

/// A pool between two tensors of codes chooses codes.
TEST(CodeFunction, PoolsOfCodes) {
  for (const DType from : kCodeTypes) {
    for (const DType to : kCodeTypes) {
      for (const int64_t channels : {3, 64}) {
        Net net;
        const ValueId x = net.Dequantized(net.Input(from, {2, channels, 9, 7}), 0.25, 7);
        const ValueId pool = net.Op("MaxPool", {net.Op("Relu", {x})}, PoolOf(3, 2, 1));
        const auto kernels = net.Check(net.Quantized(pool, 0.5, 3, to));
        EXPECT_THAT(kernels.back(), "table of codes");
        EXPECT_THAT(kernels, Not(Contains("tile chain")));
      }
    }
  }
}

/// The codes after the pool are those before it: there is no table.
TEST(CodeFunction, PoolsThatKeepCodes) {
  Net net;
  const ValueId x = net.Dequantized(net.Input(DType::kI8, {1, 16, 9, 9}), 0.25, 7);
  const auto kernels =
      net.Check(net.Quantized(net.Op("MaxPool", {x}, PoolOf(2, 2, 0)), 0.25, 7, DType::kI8));
  EXPECT_THAT(kernels, Not(Contains(HasSubstr("table"))));
  EXPECT_THAT(kernels, Not(Contains("tile chain")));
}

/// Negative scales and functions that decrease choose other elements.
TEST(CodeFunction, PoolsOfDecreasingFunctionsStay) {
  for (const bool negative : {true, false}) {
    Net net;
    ValueId x = net.Dequantized(net.Input(DType::kU8, {1, 16, 9, 9}), negative ? -0.25 : 0.25, 7);
    if (!negative) x = net.Op("Abs", {x});
    const auto kernels =
        net.Check(net.Quantized(net.Op("MaxPool", {x}, PoolOf(3, 1, 1)), 0.25, 7, DType::kI8));
    EXPECT_THAT(kernels, Contains("tile chain"));
  }
}

/// Readers of the floats get them.
TEST(CodeFunction, PoolsThatAreReadInFloat) {
  Net net;
  const ValueId x = net.Dequantized(net.Input(DType::kU8, {1, 16, 9, 9}), 0.25, 7);
  const ValueId pool = net.Op("MaxPool", {x}, PoolOf(3, 2, 1));
  net.builder.Output("floats", net.Op("Tanh", {pool}));
  net.Check(net.Quantized(pool, 0.5, 3, DType::kU8));
}

}  // namespace
}  // namespace mendel::cpu
