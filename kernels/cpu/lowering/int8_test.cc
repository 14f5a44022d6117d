// Quantized networks: elementwise chains over small integers, and integer products, against the
// definitions of their operators.

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "base/random.h"
#include "base/status.h"
#include "gmock/gmock.h"
#include "graph/graph.h"
#include "gtest/gtest.h"
#include "kernels/cpu/lowering/integer_product.h"
#include "kernels/cpu/testing/quantized_net.h"

namespace mendel::cpu {
namespace {

using testing::Contains;
using testing::Each;
using testing::HasSubstr;
using testing::Not;

using Net = QuantizedNet;

TEST(Int8, ZeroPointsAndScalesOfChannelsBroadcast) {
  for (const DType dtype : kCodeTypes) {
    Net net;
    const ValueId q = net.Input(dtype, {2, 20, 3, 5});
    const ValueId scale = net.Weights(DType::kF32, {20, 1, 1}, 1, 9, 0.125);
    const ValueId zero = net.Weights(dtype, {20, 1, 1}, 0, 100);
    EXPECT_THAT(net.Check(net.Dequantized(q, scale, zero)), testing::ElementsAre("tile chain"));
  }
}

/// Halves round to the even number, before the zero point is added.
TEST(Int8, HalvesRoundAsTheyAreDefined) {
  for (const int64_t zero : {0, 1, 2, 101}) {
    Net net;
    net.Check(net.Quantized(net.Input(DType::kF32, {4000}), 1.0 / 32, zero, DType::kU8));
  }
}

TEST(Int8, CastsWrapAndTruncate) {
  for (const DType to : {DType::kU8, DType::kI8, DType::kI32, DType::kBool}) {
    for (const DType from : {DType::kF32, DType::kU8, DType::kI8, DType::kI32, DType::kBool}) {
      Net net;
      const ValueId x = net.Input(from, {3000});
      if (from == DType::kF32) {
        std::vector<double>& values = net.inputs[0].scalars;
        const double special[] = {3e9,          -3e9,          1e19, -1e19, 4294967296.0 * 5,
                                  2147483648.0, -2147483648.0, 1e30, 0.99,  -0.99,
                                  255.5,        -128.5};
        std::copy(std::begin(special), std::end(special), values.begin());
      }
      EXPECT_THAT(net.Check(net.Cast(net.Cast(x, to), DType::kF32)),
                  Each(Not(HasSubstr("definition"))));
    }
  }
}

/// Rounds as a cast of a large integer does; sums of large integers are no business of floats.
TEST(Int8, LargeIntegersStayExact) {
  Net net;
  const ValueId x = net.Input(DType::kI32, {2000});
  const ValueId y = net.Op("Sub", {x, net.Number(DType::kI32, 12345)});
  net.builder.Output("exact", y);
  net.Check(net.Cast(y, DType::kF32));
}

/// Blocks of channels are undone for readers that want rows, in every element type.
TEST(Int8, CodesLieInTheLayoutOfTheirMaker) {
  for (const DType dtype : {DType::kU8, DType::kI8, DType::kBool, DType::kI32}) {
    Net net;
    const ValueId x = net.Input(DType::kF32, {1, 24, 9, 9});
    ValueId y =
        net.Op("Conv", {x, net.Weights(DType::kF32, {24, 24, 3, 3}, -2, 2, 0.25)},
               {{"pads", Ints{1, 1, 1, 1}}, {"strides", Ints{1, 1}}, {"dilations", Ints{1, 1}}});
    y = net.Cast(net.Op("Clip", {net.Op("Round", {y})}, {{"min", 0.0}, {"max", 100.0}}), dtype);
    net.Check(net.Op("Transpose", {y}, {{"perm", Ints{0, 2, 3, 1}}}));
  }
}

/// A convolution of codes that ends in codes, or in floats.
struct ConvCase {
  Shape x;
  int64_t out = 8, taps = 1, group = 1, stride = 1, dilation = 1, pad = 0;
};
constexpr double kStep = 1.0 / 16;

ValueId QuantizedConv(Net& net, const ConvCase& c, DType dtype, int64_t zero, int64_t most) {
  const ValueId x = net.Dequantized(net.Input(dtype, c.x), kStep, zero);
  Shape kernel = {c.out, c.x[1] / c.group};
  kernel.resize(c.x.size(), c.taps);
  const ValueId codes = net.Weights(DType::kI8, kernel, -most, most);
  Shape channels(c.x.size(), 1);
  channels[0] = c.out;
  const ValueId w = net.Op(
      "Mul", {net.Cast(codes, DType::kF32), net.Weights(DType::kF32, channels, 1, 7, kStep / 8)});
  const ValueId bias = net.Weights(DType::kF32, {c.out}, -40, 40, kStep);
  const size_t spatial = c.x.size() - 2;
  return net.Op("Conv", {x, w, bias},
                {{"group", c.group},
                 {"pads", Ints(2 * spatial, c.pad)},
                 {"strides", Ints(spatial, c.stride)},
                 {"dilations", Ints(spatial, c.dilation)}});
}

const ConvCase kConvs[] = {
    {{1, 3, 17, 17}, 16, 7, 1, 2, 1, 3},
    {{2, 16, 9, 7}, 24, 3, 1, 1, 1, 1},
    {{1, 64, 8, 8}, 40, 1},
    {{1, 20, 8, 8}, 7, 1, 1, 2},
    {{1, 32, 9, 9}, 32, 3, 32, 1, 1, 1},
    {{1, 24, 9, 9}, 24, 5, 24, 2, 1, 2},
    {{1, 32, 9, 9}, 64, 3, 4, 1, 1, 1},
    {{1, 16, 12, 12}, 16, 3, 1, 1, 2, 2},
    {{3, 16, 30}, 32, 3, 1, 1, 1, 1},
    {{1, 8, 5, 6, 7}, 16, 3, 1, 1, 1, 1},
    {{1, 6, 5, 5}, 6, 3, 3, 1, 1, 1},
};

bool Int8Runs(const std::vector<std::string>& kernels) { return CountOf(kernels, "int8 ") > 0; }

/// Native kernels leave groups of few channels to f32.
bool RunsInInt8(const ConvCase& c) {
  return SumsInt8Exactly() || (MultipliesInt8() && c.group != 3);
}

/// Sums are exact, and all scales are powers of two times small numbers: f32 rounds nothing.
TEST(Int8, ConvolutionsAreExact) {
  for (const DType dtype : kCodeTypes) {
    for (const int64_t zero : {0, 1, 77}) {
      for (const ConvCase& c : kConvs) {
        SCOPED_TRACE(testing::Message() << ShapeString(c.x) << " taps " << c.taps << " group "
                                        << c.group << " zero " << zero << DTypeName(dtype));
        Net net;
        const auto kernels = net.Check(QuantizedConv(net, c, dtype, zero, 127), Numerics::kInt8);
        EXPECT_EQ(Int8Runs(kernels), RunsInInt8(c)) << testing::PrintToString(kernels);
        Net strict;
        EXPECT_FALSE(
            Int8Runs(strict.Check(QuantizedConv(strict, c, dtype, zero, 127), Numerics::kDefault)));
      }
    }
  }
}

TEST(Int8, ConvolutionsThatEndInCodesAreExact) {
  for (const DType dtype : kCodeTypes) {
    for (const int64_t zero : {0, 2, 77}) {
      for (const char* activation : {"", "Relu", "Clip"}) {
        for (const ConvCase& c : kConvs) {
          SCOPED_TRACE(testing::Message()
                       << ShapeString(c.x) << " taps " << c.taps << " group " << c.group << " zero "
                       << zero << activation << DTypeName(dtype));
          Net net;
          ValueId y = QuantizedConv(net, c, dtype, zero, 64);
          if (activation[0] == 'R') y = net.Op("Relu", {y});
          if (activation[0] == 'C') y = net.Op("Clip", {y}, {{"min", 0.0}, {"max", 6.0}});
          const auto kernels =
              net.Check(net.Quantized(y, c.pad > 0 ? 4 : 0.5, zero, dtype), Numerics::kInt8);
          if (!RunsInInt8(c)) continue;
          EXPECT_TRUE(Int8Runs(kernels)) << testing::PrintToString(kernels);
          EXPECT_LE(kernels.size(), 3u) << testing::PrintToString(kernels);
        }
      }
    }
  }
}

TEST(Int8, ProductsAreExact) {
  for (const DType dtype : kCodeTypes) {
    for (const int64_t zero : {0, 3, 77}) {
      for (const Shape& shape : {Shape{1, 64}, Shape{5, 33}, Shape{2, 3, 256}, Shape{128, 100}}) {
        SCOPED_TRACE(testing::Message() << ShapeString(shape) << " zero " << zero);
        const auto product = [&](Net& net) {
          const ValueId x = net.Dequantized(net.Input(dtype, shape), kStep, zero);
          const ValueId w = net.Op(
              "Mul", {net.Cast(net.Weights(DType::kI8, {shape.back(), 48}, -60, 60), DType::kF32),
                      net.Weights(DType::kF32, {48}, 1, 7, kStep)});
          return net.Op("Add",
                        {net.Op("MatMul", {x, w}), net.Weights(DType::kF32, {48}, -40, 40, kStep)});
        };
        const bool all = MultipliesInt8();
        Net floats, codes;
        EXPECT_EQ(Int8Runs(floats.Check(product(floats), Numerics::kInt8)), all);
        EXPECT_EQ(
            Int8Runs(codes.Check(codes.Quantized(product(codes), 8, zero, dtype), Numerics::kInt8)),
            all);
      }
    }
  }
}

/// MatMulInteger, with a zero point that is known at run time only.
TEST(Int8, ProductsTakeZeroPointsAtRunTime) {
  for (const DType dtype : kCodeTypes) {
    for (const Shape& shape : {Shape{1, 64}, Shape{2, 17, 100}}) {
      Net net;
      const ValueId q = net.Input(dtype, shape);
      const ValueId zero = net.Input(dtype, {});
      const ValueId x = net.Op("Sub", {net.Cast(q, DType::kI32), net.Cast(zero, DType::kI32)});
      const ValueId w = net.Cast(net.Weights(DType::kI8, {shape.back(), 40}, -64, 64), DType::kI32);
      const ValueId y = net.Cast(net.Op("MatMul", {x, w}), DType::kF32);
      const ValueId scale = net.Input(DType::kF32, {40});
      const auto kernels = net.Check(net.Op("Mul", {y, scale}), Numerics::kInt8);
      EXPECT_EQ(Int8Runs(kernels), MultipliesInt8()) << testing::PrintToString(kernels);
    }
  }
}

/// A convolution in integers is not computed again in f32 with the depthwise one after it.
TEST(Int8, ExpansionsOfDepthwiseConvolutionsStayInIntegers) {
  Net net;
  const ValueId x = net.Op("Relu", {QuantizedConv(net, {{1, 24, 9, 9}, 48}, DType::kU8, 77, 127)});
  const ValueId y = net.Op("Conv", {x, net.Weights(DType::kF32, {48, 1, 3, 3}, -3, 3, 0.25)},
                           {{"group", int64_t{48}},
                            {"pads", Ints{1, 1, 1, 1}},
                            {"strides", Ints{1, 1}},
                            {"dilations", Ints{1, 1}}});
  net.builder.Output("y", y);
  const Graph graph = *net.builder.Build();
  CompileOptions options;
  options.numerics = Numerics::kInt8;
  options.algorithms[y.node] = "depthwise-own:expand";
  if (!MultipliesInt8()) return;
  EXPECT_TRUE(Int8Runs(ExpectMatches(graph, net.inputs, options)));
}

/// The steps of an unrolled recurrence share the packed form of their weights.
TEST(Int8, ProductsWithOneOperandAreExact) {
  Net net;
  const ValueId w = net.Cast(net.Weights(DType::kI8, {64, 64}, -9, 9), DType::kI32);
  const ValueId zero = net.Cast(net.Input(DType::kU8, {}), DType::kI32);
  ValueId codes = net.Input(DType::kU8, {3, 64});
  for (int step = 0; step < 5; ++step) {
    const ValueId sums = net.Op("MatMul", {net.Op("Sub", {net.Cast(codes, DType::kI32), zero}), w});
    codes = net.Quantized(net.Cast(sums, DType::kF32), 256, 101, DType::kU8);
  }
  EXPECT_THAT(net.Check(codes), Contains(HasSubstr(MultipliesInt8() ? "int8 " : "typed")));
}

/// The most that a processor without VNNI must not lose: both codes of a pair at their ends.
TEST(Int8, SumsDoNotSaturate) {
  for (const int64_t weight : {127, -128, 64, -64}) {
    for (const int64_t code : {255, 0}) {
      Net net;
      const ValueId q = net.Input(DType::kU8, {4, 96});
      std::fill(net.inputs[0].integers.begin(), net.inputs[0].integers.end(), code);
      const ValueId w =
          net.Op("Mul", {net.Cast(net.Weights(DType::kI8, {96, 32}, weight, weight), DType::kF32),
                         net.Number(DType::kF32, 1.0 / 64)});
      net.Check(net.Op("MatMul", {net.Dequantized(q, 1, 0), w}), Numerics::kInt8);
    }
  }
}

}  // namespace
}  // namespace mendel::cpu
