#include "kernels/cpu/spelled_gelu.h"

#include <cmath>

#include "base/random.h"
#include "graph/random_graph.h"
#include "gtest/gtest.h"
#include "kernels/cpu/test_support.h"

namespace mendel::cpu {
namespace {

/// What is computed of a product: x * (1 + erf(x / divisor)) * half, whose gate is an output too if `shown`.
size_t StepsOfGelu(double divisor, double half, bool shown) {
  GraphBuilder builder;
  const auto number = [&](double value) { return builder.Constant(Tensor::Scalar(DType::kF32, value)); };
  std::vector<double> weights(512);
  for (size_t k = 0; k < weights.size(); ++k) weights[k] = static_cast<double>(k % 13) / 13 - 0.5;
  const ValueId w = builder.Constant(Tensor::FromDoubles({DType::kF32, {16, 32}}, weights), "w");
  const ValueId x = *builder.Add("MatMul", {builder.Input("x", {DType::kF32, {5, 16}}), w});
  const ValueId gate = *builder.Add("Add", {*builder.Add("Erf", {*builder.Add("Div", {x, number(divisor)})}), number(1)});
  builder.Output("y", *builder.Add("Mul", {*builder.Add("Mul", {x, gate}), number(half)}));
  if (shown) builder.Output("gate", gate);
  const Graph graph = *builder.Build();
  Rng rng(1);
  return ExpectMatches(graph, RandomInputs(rng, graph), {}).size();
}

TEST(SpelledGelu, IsPartOfItsProduct) {
  EXPECT_EQ(StepsOfGelu(std::sqrt(2.0), 0.5, false), 1u);
  EXPECT_GT(StepsOfGelu(1.41, 0.5, false), 1u);
  EXPECT_GT(StepsOfGelu(std::sqrt(2.0), 0.4, false), 1u);
  EXPECT_GT(StepsOfGelu(std::sqrt(2.0), 0.5, true), 1u);
}

}  // namespace
}  // namespace mendel::cpu
