// Quantized networks: elementwise chains over small integers, and integer products, against the
// definitions of their operators.

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "base/random.h"
#include "base/status.h"
#include "gmock/gmock.h"
#include "graph/graph.h"
#include "gtest/gtest.h"
#include "kernels/cpu/testing/test_support.h"

namespace mendel::cpu {
namespace {

using testing::Contains;
using testing::Each;
using testing::HasSubstr;
using testing::Not;

/// Builds graphs as the importer spells QuantizeLinear and DequantizeLinear.
class Net {
 public:
  explicit Net(uint64_t seed = 1) : rng_(seed) {}

  /// An input of random integers of the type, or of multiples of 1/64 for floats.
  ValueId Input(DType dtype, const Shape& shape) {
    HostValue value{{dtype, shape}, {}, {}};
    for (int64_t k = NumElements(shape); k > 0; --k) {
      if (IsFloat(dtype)) {
        value.scalars.push_back(static_cast<double>(rng_.Between(-640, 640)) / 64);
      } else {
        value.integers.push_back(rng_.Between(LowestInteger(dtype), HighestInteger(dtype)));
      }
    }
    inputs.push_back(value);
    return builder.Input(Cat("x", inputs.size()), value.type);
  }
  ValueId Weights(DType dtype, const Shape& shape, int64_t low, int64_t high, double unit = 1) {
    std::vector<double> values;
    for (int64_t k = NumElements(shape); k > 0; --k)
      values.push_back(static_cast<double>(rng_.Between(low, high)) * unit);
    return builder.Constant(Tensor::FromDoubles({dtype, shape}, values), Cat("w", ++constants_));
  }
  ValueId Number(DType dtype, double value) {
    return builder.Constant(Tensor::Scalar(dtype, value), Cat("n", ++constants_));
  }
  ValueId Op(std::string_view name, const std::vector<ValueId>& operands, Attributes attrs = {}) {
    const auto value = builder.Add(name, operands, std::move(attrs));
    EXPECT_TRUE(value.ok()) << value.status();
    return *value;
  }
  ValueId Cast(ValueId x, DType to) {
    return Op("Cast", {x}, {{"to", std::string(DTypeName(to))}});
  }
  ValueId Dequantized(ValueId q, ValueId scale, std::optional<ValueId> zero) {
    ValueId x = q;
    if (zero.has_value()) x = Op("Sub", {Cast(q, DType::kI32), Cast(*zero, DType::kI32)});
    return Op("Mul", {Cast(x, DType::kF32), scale});
  }
  ValueId Dequantized(ValueId q, double scale, int64_t zero) {
    return Dequantized(q, Number(DType::kF32, scale),
                       Number(builder.type(q).dtype, static_cast<double>(zero)));
  }
  ValueId Quantized(ValueId x, double scale, int64_t zero, DType to) {
    x = Op("Round", {Op("Div", {x, Number(DType::kF32, scale)})});
    x = Op("Add", {x, Cast(Number(to, static_cast<double>(zero)), DType::kF32)});
    x = Op("Clip", {x},
           {{"min", static_cast<double>(LowestInteger(to))},
            {"max", static_cast<double>(HighestInteger(to))}});
    return Cast(x, to);
  }
  /// The kernels that run. Integers are compared exactly.
  std::vector<std::string> Check(ValueId y, Numerics numerics = Numerics::kDefault) {
    builder.Output("y", y);
    const absl::StatusOr<Graph> graph = builder.Build();
    EXPECT_TRUE(graph.ok()) << graph.status();
    CompileOptions options;
    options.numerics = numerics;
    std::vector<std::string> kernels;
    for (const int threads : {1, 3}) {
      options.threads = threads;
      kernels = ExpectMatches(*graph, inputs, options);
    }
    return kernels;
  }

  GraphBuilder builder;
  std::vector<HostValue> inputs;

 private:
  Rng rng_;
  int constants_ = 0;
};

constexpr DType kCodes[] = {DType::kU8, DType::kI8};

TEST(Int8, SumsOfQuantizedValuesAreOneChain) {
  for (const DType a : kCodes) {
    for (const DType b : kCodes) {
      for (const Shape& shape : {Shape{2, 3, 5, 7}, Shape{1, 64, 9, 9}, Shape{1}, Shape{1500}}) {
        Net net;
        const ValueId x = net.Dequantized(net.Input(a, shape), 0.25, 7);
        const ValueId y = net.Dequantized(net.Input(b, shape), 0.5, -0);
        const auto kernels = net.Check(net.Quantized(net.Op("Add", {x, y}), 0.75, 3, a));
        EXPECT_THAT(kernels, testing::ElementsAre("tile chain"));
      }
    }
  }
}

TEST(Int8, ZeroPointsAndScalesOfChannelsBroadcast) {
  for (const DType dtype : kCodes) {
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

}  // namespace
}  // namespace mendel::cpu
