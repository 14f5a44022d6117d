#include "verifier/field_evaluator.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <utility>

#include "graph/text.h"

namespace mendel {
namespace {

Graph Parse(const std::string& text) {
  auto graph = ParseGraph(text);
  EXPECT_TRUE(graph.ok()) << graph.status() << "\n" << text;
  return graph.ok() ? *graph : Graph();
}

std::vector<std::vector<Fp>> Values(const Graph& graph, const Draw& draw,
                                    WeightMode weights = WeightMode::kSymbolic,
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

/// Large tensors take their elements from a table of powers of two, small ones and single positions
/// do not.
TEST(FieldEvaluator, StoredWeightsAreTheirDyadicRationals) {
  Rng rng(9);
  std::vector<double> numbers = {0,       -0.0,      1,          -1,        0.1,
                                 -0.1,    0x1p-1074, -0x1p-1074, 0x1p-1022, 0x1.fffffffffffffp1023,
                                 0x1p1023};
  while (numbers.size() < 1000) numbers.push_back(std::bit_cast<double>(rng.Next()));
  for (double& number : numbers) number = std::isfinite(number) ? number : 0.5;
  GraphBuilder builder;
  builder.Output("y", builder.Constant(Tensor::FromDoubles({DType::kF64, {1000}}, numbers), "w"));
  const auto graph = builder.Build();
  ASSERT_TRUE(graph.ok());
  for (const Draw& draw : {SeededDraw(rng), SelectionDraw({1, 2}), Draw{7, {3, 4}}}) {
    const PrimeField field(draw.prime);
    const auto values = Values(*graph, draw, WeightMode::kExact);
    for (size_t i = 0; i < numbers.size(); ++i)
      ASSERT_EQ(values[0][i].value, field.FromDouble(numbers[i])) << numbers[i];
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

/// An elementwise operator is one function of each element's operands: the box of a result is the
/// result of boxes.
TEST(FieldEvaluator, OpaqueElementwiseOperatorsCommuteWithMovement) {
  const Graph graph = Parse(R"(graph "f" {
    %0 = Input() {dtype = "i64", name = "ids", shape = [2, 3]}
    %1 = Constant() {value = i64[3]{5, 5, 7}}
    %2 = Add(%0, %1)
    %3 = Transpose(%2) {perm = [1, 0]}
    %4 = Transpose(%0) {perm = [1, 0]}
    %5 = Reshape(%1) {shape = [3, 1]}
    %6 = Add(%4, %5)
    %7 = Mul(%4, %5)
    %8 = Add(%4, %4)
    %9 = Add(%5, %4)
    return "a" = %3, "b" = %6, "c" = %7, "d" = %8, "e" = %9
  })");
  Rng rng(5);
  const auto values = Values(graph, SeededDraw(rng));
  EXPECT_EQ(values[0], values[1]);
  for (size_t i = 0; i < values[0].size(); ++i) {
    for (size_t other : {2, 3, 4}) EXPECT_NE(values[0][i], values[other][i]) << other;
    for (size_t j = 0; j < i; ++j)
      EXPECT_NE(values[0][i], values[0][j]) << "positions " << i << " and " << j;
  }
}

/// The dtypes of the operands are part of the function, and so are the attributes: 255 + 1 is 0 to
/// u8 and 256 to i32.
TEST(FieldEvaluator, OpaqueElementwiseOperatorsDifferByDTypeAndAttributes) {
  const Graph graph = Parse(R"(graph "f" {
    %0 = Input() {name = "x", shape = [2]}
    %1 = Constant() {value = i32[]{2}}
    %2 = Constant() {value = i64[]{2}}
    %3 = Pow(%1, %0)
    %4 = Pow(%2, %0)
    %5 = Cast(%0) {to = "i32"}
    %6 = Cast(%5) {to = "i8"}
    %7 = Cast(%5) {to = "u8"}
    return "a" = %3, "b" = %4, "c" = %6, "d" = %7
  })");
  Rng rng(6);
  const auto values = Values(graph, SeededDraw(rng));
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_NE(values[0][i], values[1][i]);
    EXPECT_NE(values[2][i], values[3][i]);
  }
}

/// An operator's result from a box of its operands is a function of that box, wherever it
/// stands.
TEST(FieldEvaluator, OpaqueOperatorsOfBoxesAreThoseOfParts) {
  const Graph graph = Parse(R"(graph "f" {
    %0 = Input() {name = "x", shape = [2, 3, 4]}
    %1 = Slice(%0) {starts = [0, 1, 0], ends = [2, 2, 4], steps = [1, 1, 1]}
    %2 = Hardmax(%0) {axis = 2}
    %3 = Slice(%2) {starts = [0, 1, 0], ends = [2, 2, 4], steps = [1, 1, 1]}
    %4 = Hardmax(%1) {axis = 2}
    %5 = Hardmax(%1) {axis = 0}
    %6 = ArgMax(%0) {axis = 2, keepdims = 1}
    %7 = Slice(%6) {starts = [0, 1, 0], ends = [2, 2, 1], steps = [1, 1, 1]}
    %8 = ArgMax(%1) {axis = 2, keepdims = 1}
    %9 = ArgMin(%1) {axis = 2, keepdims = 1}
    %10 = Input() {dtype = "i64", name = "ids", shape = [5]}
    %11 = Gather(%0, %10) {axis = 1}
    %12 = Slice(%11) {starts = [0, 2, 0], ends = [2, 4, 4], steps = [1, 1, 1]}
    %13 = Slice(%10) {starts = [2], ends = [4], steps = [1]}
    %14 = Gather(%0, %13) {axis = 1}
    %15 = Slice(%10) {starts = [1], ends = [3], steps = [1]}
    %16 = Gather(%0, %15) {axis = 1}
    return "a" = %3, "b" = %4, "c" = %5, "d" = %7, "e" = %8, "f" = %9, "g" = %12, "h" = %14, "i" = %16
  })");
  Rng rng(7);
  const auto values = Values(graph, SeededDraw(rng));
  EXPECT_EQ(values[0], values[1]) << "Hardmax";
  EXPECT_EQ(values[3], values[4]) << "ArgMax";
  EXPECT_EQ(values[6], values[7]) << "Gather";
  for (const auto& [same, other] : {std::pair{1, 2}, std::pair{4, 5}, std::pair{7, 8}}) {
    const auto& a = values[static_cast<size_t>(same)];
    const auto& b = values[static_cast<size_t>(other)];
    ASSERT_EQ(a.size(), b.size());
    int equal = 0;
    for (size_t i = 0; i < a.size(); ++i) equal += a[i] == b[i] ? 1 : 0;
    EXPECT_EQ(equal, 0) << same << " and " << other;
  }
}

/// Zeros and elements moved are no arithmetic; other literals may wrap.
TEST(FieldEvaluator, PaddingOfIntegersMovesElements) {
  const Graph graph = Parse(R"(graph "f" {
    %0 = Input() {dtype = "u8", name = "x", shape = [3]}
    %1 = Pad(%0) {pads = [1, 0]}
    %2 = Pad(%0) {pads = [1, 0], mode = "edge"}
    %3 = Pad(%0) {pads = [1, 0], value = 255.0}
    return "x" = %0, "zero" = %1, "edge" = %2, "literal" = %3
  })");
  Rng rng(11);
  const auto values = Values(graph, SeededDraw(rng));
  EXPECT_EQ(values[1][0].value, 0u);
  EXPECT_EQ(values[2][0], values[0][0]);
  EXPECT_NE(values[3][0].value, 255u);
  for (size_t i = 0; i < 3; ++i) {
    for (size_t k : {1, 2}) EXPECT_EQ(values[k][i + 1], values[0][i]);
    EXPECT_NE(values[3][i + 1], values[0][i]);
  }
}

/// The same box somewhere else gives the same elements, and every element of the operand counts.
TEST(FieldEvaluator, OpaqueBoxesDependOnAllThatTheyRead) {
  for (int changed = 0; changed < 3; ++changed) {
    const std::string other = changed == 0 ? "0, 1" : changed == 1 ? "9, 1" : "0, 9";
    const Graph graph = Parse(R"(graph "f" {
      %0 = Constant() {value = f32[2,2]{0, 1, )" +
                              other + R"(}}
      %1 = Hardmax(%0) {axis = 1}
      return "y" = %1
    })");
    Rng rng(8);
    const auto y = Values(graph, SeededDraw(rng))[0];
    EXPECT_EQ(y[0] == y[2], changed == 0);
    EXPECT_EQ(y[1] == y[3], changed == 0);
    EXPECT_NE(y[0], y[1]);
  }
}

/// Reading the table once for every index would cost too much: then the node is one function of
/// everything.
TEST(FieldEvaluator, CostlyOpaqueOperatorsAreWhole) {
  const Graph graph = Parse(R"(graph "f" {
    %0 = Input() {name = "table", shape = [4096, 8]}
    %1 = Input() {dtype = "i64", name = "ids", shape = [64]}
    %2 = Gather(%0, %1) {axis = 0}
    %3 = Slice(%2) {starts = [0, 0], ends = [1, 8], steps = [1, 1]}
    %4 = Slice(%1) {starts = [0], ends = [1], steps = [1]}
    %5 = Gather(%0, %4) {axis = 0}
    %6 = Gather(%0, %1) {axis = 0}
    return "a" = %3, "b" = %5, "c" = %2, "d" = %6
  })");
  Rng rng(10);
  const auto values = Values(graph, SeededDraw(rng));
  EXPECT_NE(values[0], values[1]);
  EXPECT_EQ(values[2], values[3]);
}

}  // namespace
}  // namespace mendel
