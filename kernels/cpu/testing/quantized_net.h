// Quantized networks for tests, in the operators that the importer makes of theirs.
#ifndef MENDEL_KERNELS_CPU_TESTING_QUANTIZED_NET_H_
#define MENDEL_KERNELS_CPU_TESTING_QUANTIZED_NET_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/random.h"
#include "base/status.h"
#include "graph/graph.h"
#include "gtest/gtest.h"
#include "kernels/cpu/testing/test_support.h"

namespace mendel::cpu {

inline constexpr DType kCodeTypes[] = {DType::kU8, DType::kI8};

/// Builds graphs as the importer spells QuantizeLinear and DequantizeLinear.
class QuantizedNet {
 public:
  explicit QuantizedNet(uint64_t seed = 1) : rng_(seed) {}

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

}  // namespace mendel::cpu

#endif  // MENDEL_KERNELS_CPU_TESTING_QUANTIZED_NET_H_
