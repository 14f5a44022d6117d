#include "verifier/field_evaluator.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "graph/text.h"

namespace mendel {
namespace {

Graph Parse(const std::string& text) {
  auto graph = ParseGraph(text);
  EXPECT_TRUE(graph.ok()) << graph.status() << "\n" << text;
  return graph.ok() ? *graph : Graph();
}

std::vector<std::vector<Fp>> Values(const Graph& graph, const Draw& draw, WeightMode weights = WeightMode::kSymbolic,
                                    InputNaming naming = InputNaming::kByName) {
  auto values = EvaluateOutputs(graph, draw, weights, naming);
  EXPECT_TRUE(values.ok()) << values.status();
  return values.ok() ? *values : std::vector<std::vector<Fp>>();
}

TEST(FieldEvaluator, DistributesAndNamesSymbols) {
  Rng rng(1);
  const Draw draw = SeededDraw(rng);
  const Graph factored = Parse(R"(graph "f" {
    %0 = Input() {name = "x", shape = [3]}
    %1 = Constant() {symbol = "w", value = f32[3]{1, 2, 3}}
    %2 = Constant() {value = f32[]{0.375}}
    %3 = Add(%0, %1)
    %4 = Mul(%3, %2)
    return "y" = %4
  })");
  const Graph expanded = Parse(R"(graph "g" {
    %0 = Input() {name = "x", shape = [3]}
    %1 = Constant() {symbol = "w", value = f32[3]{7, 8, 9}}
    %2 = Constant() {value = f32[]{0.375}}
    %3 = Mul(%0, %2)
    %4 = Mul(%1, %2)
    %5 = Add(%3, %4)
    return "y" = %5
  })");
  EXPECT_EQ(Values(factored, draw), Values(expanded, draw));
  EXPECT_NE(Values(factored, draw, WeightMode::kExact), Values(expanded, draw, WeightMode::kExact));
  EXPECT_EQ(Values(factored, draw), Values(factored, draw));
  EXPECT_NE(Values(factored, draw), Values(factored, SeededDraw(rng)));
}

TEST(FieldEvaluator, DrawsInputsByNameOrPosition) {
  Rng rng(2);
  const Draw draw = SeededDraw(rng);
  const std::string text = R"(graph "f" {
    %0 = Input() {name = "NAME", shape = [2]}
    return "y" = %0
  })";
  const Graph a = Parse(std::string(text).replace(text.find("NAME"), 4, "a"));
  const Graph b = Parse(std::string(text).replace(text.find("NAME"), 4, "b"));
  EXPECT_NE(Values(a, draw), Values(b, draw));
  EXPECT_EQ(Values(a, draw, WeightMode::kSymbolic, InputNaming::kByPosition),
            Values(b, draw, WeightMode::kSymbolic, InputNaming::kByPosition));
}

TEST(FieldEvaluator, NonFiniteLiteralsAreSymbolsOfTheirOwn) {
  Rng rng(3);
  const Graph graph = Parse(R"(graph "f" {
    %0 = Constant() {value = f32[4]{-inf, inf, -inf, nan}}
    return "y" = %0
  })");
  const auto values = Values(graph, SeededDraw(rng));
  EXPECT_EQ(values[0][0], values[0][2]);
  EXPECT_NE(values[0][0], values[0][1]);
  EXPECT_NE(values[0][0], values[0][3]);
}

/// Large tensors take their elements from a table of powers of two, small ones and single positions do not.
TEST(FieldEvaluator, StoredWeightsAreTheirDyadicRationals) {
  Rng rng(9);
  std::vector<double> numbers = {0, -0.0, 1, -1, 0.1, -0.1, 0x1p-1074, -0x1p-1074, 0x1p-1022, 0x1.fffffffffffffp1023, 0x1p1023};
  while (numbers.size() < 1000) numbers.push_back(std::bit_cast<double>(rng.Next()));
  for (double& number : numbers) number = std::isfinite(number) ? number : 0.5;
  GraphBuilder builder;
  builder.Output("y", builder.Constant(Tensor::FromDoubles({DType::kF64, {1000}}, numbers), "w"));
  const auto graph = builder.Build();
  ASSERT_TRUE(graph.ok());
  for (const Draw& draw : {SeededDraw(rng), SelectionDraw({1, 2}), Draw{7, {3, 4}}}) {
    const PrimeField field(draw.prime);
    const auto values = Values(*graph, draw, WeightMode::kExact);
    for (size_t i = 0; i < numbers.size(); ++i) ASSERT_EQ(values[0][i].value, field.FromDouble(numbers[i])) << numbers[i];
  }
}

TEST(FieldEvaluator, RunTimeIntegersAreOpaqueAndConstantOnesExact) {
  Rng rng(4);
  const Graph graph = Parse(R"(graph "f" {
    %0 = Input() {dtype = "i64", name = "ids", shape = [2]}
    %1 = Constant() {value = i64[2]{5, -1}}
    %2 = Add(%0, %1)
    %3 = Add(%1, %1)
    %4 = Add(%1, %0)
    %5 = Reshape(%0) {shape = [2, 1]}
    return "a" = %2, "b" = %3, "c" = %4, "d" = %5, "e" = %0
  })");
  const Draw draw = SeededDraw(rng);
  const auto values = Values(graph, draw);
  EXPECT_EQ(values[1][0].value, 10u);
  EXPECT_EQ(values[1][1].value, draw.prime - 2);
  EXPECT_NE(values[0], values[2]);  // an oracle, not arithmetic
  EXPECT_EQ(values[3], values[4]);
}

}  // namespace
}  // namespace mendel
