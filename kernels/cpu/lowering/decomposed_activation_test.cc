#include "kernels/cpu/lowering/decomposed_activation.h"

#include <cmath>

#include "base/random.h"
#include "graph/random_graph.h"
#include "gtest/gtest.h"
#include "kernels/cpu/simd/native_isa.h"
#include "kernels/cpu/testing/test_support.h"

namespace mendel::cpu {
namespace {

/// A product of an input "x" and stored weights.
ValueId Product(GraphBuilder& builder) {
  const ValueId w = builder.Constant(MixedWeights({16, 32}), "w");
  return *builder.Add("MatMul", {builder.Input("x", {DType::kF32, {5, 16}}), w});
}

size_t StepsOf(GraphBuilder& builder) {
  const Graph graph = *builder.Build();
  Rng rng(1);
  return ExpectMatches(graph, RandomInputs(rng, graph), {}).size();
}

/// Returns the number of steps of x * (1 + erf(x / divisor)) * half for a product x. With `shown`,
/// the gate is an output too.
size_t StepsOfGelu(double divisor, double half, bool shown) {
  GraphBuilder builder;
  const auto number = [&](double value) {
    return builder.Constant(Tensor::Scalar(DType::kF32, value));
  };
  const ValueId x = Product(builder);
  const ValueId gate = *builder.Add(
      "Add", {*builder.Add("Erf", {*builder.Add("Div", {x, number(divisor)})}), number(1)});
  builder.Output("y", *builder.Add("Mul", {*builder.Add("Mul", {x, gate}), number(half)}));
  if (shown) builder.Output("gate", gate);
  return StepsOf(builder);
}

/// Returns the number of steps of x * clip(x + offset, 0, bound) / 6 for a product x; with `moved`,
/// times and plus a number.
size_t StepsOfHardSwish(double offset, double bound, bool moved = false) {
  GraphBuilder builder;
  const auto number = [&](double value) {
    return builder.Constant(Tensor::Scalar(DType::kF32, value));
  };
  const ValueId x = Product(builder);
  const ValueId gate = *builder.Add("Clip", {*builder.Add("Add", {x, number(offset)})},
                                    {{"min", 0.0}, {"max", bound}});
  ValueId y = *builder.Add("Div", {*builder.Add("Mul", {x, gate}), number(6)});
  if (moved) y = *builder.Add("Add", {*builder.Add("Mul", {y, number(0.17)}), number(-0.2)});
  builder.Output("y", y);
  return StepsOf(builder);
}

/// This Gelu by tanh has a whole number for the exponent and separate constants.
ValueId GeluByTanh(GraphBuilder& builder, ValueId x) {
  const auto number = [&](double value) {
    return builder.Constant(Tensor::Scalar(DType::kF32, value));
  };
  const ValueId three =
      builder.Constant(Tensor::FromInts({DType::kI64, {}}, std::vector<int64_t>{3}), "three");
  const ValueId cubic = *builder.Add("Mul", {*builder.Add("Pow", {x, three}), number(0.044715)});
  const ValueId inner =
      *builder.Add("Mul", {*builder.Add("Add", {x, cubic}), number(std::sqrt(2 / M_PI))});
  const ValueId gate = *builder.Add("Add", {*builder.Add("Tanh", {inner}), number(1)});
  return *builder.Add("Mul", {*builder.Add("Mul", {x, gate}), number(0.5)});
}

TEST(DecomposedActivation, ManyInARowFitTheirRegisters) {
  GraphBuilder builder;
  std::vector<double> weights(512, 0.1);
  const ValueId w = builder.Constant(Tensor::FromDoubles({DType::kF32, {16, 32}}, weights), "w");
  ValueId x = *builder.Add("MatMul", {builder.Input("x", {DType::kF32, {5, 16}}), w});
  for (int k = 0; k < 12; ++k) x = GeluByTanh(builder, x);
  builder.Output("y", x);
  const Graph graph = *builder.Build();
  Rng rng(1);
  ExpectMatches(graph, RandomInputs(rng, graph), {});
}

TEST(DecomposedActivation, IsPartOfItsProduct) {
  EXPECT_EQ(StepsOfGelu(std::sqrt(2.0), 0.5, false), 1u);
  EXPECT_GT(StepsOfGelu(1.41, 0.5, false), 1u);
  EXPECT_GT(StepsOfGelu(std::sqrt(2.0), 0.4, false), 1u);
  EXPECT_GT(StepsOfGelu(std::sqrt(2.0), 0.5, true), 1u);
}

TEST(DecomposedActivation, HardSwishIsPartOfItsProduct) {
  EXPECT_EQ(StepsOfHardSwish(3, 6), 1u);
  EXPECT_GT(StepsOfHardSwish(2.9, 6), 1u);
  EXPECT_GT(StepsOfHardSwish(3, 5.9), 1u);
  // oneDNN's kernels for AVX-512 leave the factor and the summand to a second step.
  const size_t steps = NativeIsaHere() == NativeIsa::kAvx512 ? 2 : 1;
  EXPECT_LE(StepsOfHardSwish(3, 6, true), steps);
}

}  // namespace
}  // namespace mendel::cpu
