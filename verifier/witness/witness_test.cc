#include "verifier/witness/witness.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <iostream>

#include "base/status.h"
#include "graph/evaluate.h"
#include "graph/text.h"

namespace mendel {
namespace {

using testing::HasSubstr;

Graph Parse(const std::string& text) {
  auto graph = ParseGraph(text);
  EXPECT_TRUE(graph.ok()) << graph.status() << "\n" << text;
  return *std::move(graph);
}

/// A program of one input x[4] (f32).
Graph OfVector(const std::string& body) {
  return Parse("graph \"g\" {\n%0 = Input() {name = \"x\", shape = [4]}\n" + body + "\n}");
}

std::vector<WitnessAnswer> Find(const Graph& f, const Graph& g,
                                std::vector<WitnessQuery> queries = {},
                                WitnessOptions options = {}) {
  if (queries.empty()) queries = {{0, Box::Whole(f.type(f.outputs()[0].value).shape)}};
  auto answers = FindWitnesses(f, g, queries, options);
  EXPECT_TRUE(answers.ok()) << answers.status();
  return answers.ok() ? *std::move(answers) : std::vector<WitnessAnswer>(queries.size());
}

/// Checks all that a witness claims and that double evaluation can see; true when there is one.
bool Holds(const Graph& f, const Graph& g, const WitnessAnswer& answer, int output = 0) {
  if (!answer.witness.has_value()) return false;
  const Witness& witness = *answer.witness;
  std::vector<HostValue> inputs;
  for (size_t k = 0; k < witness.inputs.size(); ++k) {
    EXPECT_EQ(witness.inputs[k].type(), f.type({f.inputs()[k], 0}));
    inputs.push_back(HostValue::FromTensor(witness.inputs[k]));
  }
  const auto at = [&](const Graph& graph) {
    const auto values = Evaluate(graph, inputs);
    EXPECT_TRUE(values.ok()) << values.status();
    const HostValue& value = (*values)[static_cast<size_t>(output)];
    return value.At(FlatIndex(value.type.shape, witness.element));
  };
  const double size = std::max(std::abs(witness.value_f), std::abs(witness.value_g));
  const double tolerance =
      1e-8 *
      size;  // the constants of some definitions are known to f32 only (graph/ball_functions.cc)
  EXPECT_NEAR(at(f), witness.value_f, tolerance);
  EXPECT_NEAR(at(g), witness.value_g, tolerance);
  EXPECT_GT(witness.gap, 0);
  EXPECT_LE(witness.gap, std::abs(witness.value_f - witness.value_g) + witness.error_f +
                             witness.error_g + 1e-15 * size);
  EXPECT_GE(witness.gap, std::abs(witness.value_f - witness.value_g) - witness.error_f -
                             witness.error_g - 1e-15 * size);
  EXPECT_LE(witness.error_f, tolerance);
  EXPECT_LE(witness.error_g, tolerance);
  return true;
}

/// The one query's answer, which must be a witness.
Witness MustFind(const Graph& f, const Graph& g, std::vector<WitnessQuery> queries = {}) {
  const std::vector<WitnessAnswer> answers = Find(f, g, std::move(queries));
  EXPECT_TRUE(Holds(f, g, answers[0])) << answers[0].reason;
  return answers[0].witness.value_or(Witness{});
}

std::string MustNotFind(const Graph& f, const Graph& g, std::vector<WitnessQuery> queries = {},
                        WitnessOptions options = {}) {
  const std::vector<WitnessAnswer> answers = Find(f, g, std::move(queries), options);
  EXPECT_FALSE(answers[0].witness.has_value())
      << answers[0].witness->value_f << " and " << answers[0].witness->value_g;
  EXPECT_NE(answers[0].reason, "");
  std::cout << answers[0].reason << "\n";
  return answers[0].reason;
}

TEST(Witness, ScalingCommutesWithRelu) {
  const Graph f = OfVector(
      "%1 = Constant() {value = f32[]{2}}\n%2 = Mul(%0, %1)\n%3 = Relu(%2)\nreturn \"y\" = %3");
  const Graph g = OfVector(
      "%1 = Constant() {value = f32[]{2}}\n%2 = Relu(%0)\n%3 = Mul(%2, %1)\nreturn \"y\" = %3");
  EXPECT_THAT(MustNotFind(f, g), HasSubstr("largest relative gap in double precision 0"));
}

TEST(Witness, WhatDoublesRoundAwayIsNoWitness) {
  const Graph f = OfVector("return \"y\" = %0");
  const Graph g = OfVector(
      "%1 = Constant() {value = f64[]{9.094947017729282e-13}}\n%2 = Cast(%1) {to = \"f32\"}\n%3 = "
      "Mul(%0, %2)\n%4 = Mul(%3, %2)\n"
      "%5 = Add(%0, %4)\nreturn \"y\" = %5");
  MustNotFind(f, g);
}

TEST(Witness, WhatFloatsRoundAwayIsHidden) {
  const Graph f =
      OfVector("%1 = Constant() {value = f32[]{3}}\n%2 = Div(%0, %1)\nreturn \"y\" = %2");
  const Graph g =
      OfVector("%1 = Constant() {value = f32[]{0.33333334}}\n%2 = Mul(%0, %1)\nreturn \"y\" = %2");
  const std::vector<WitnessAnswer> answers = Find(f, g);
  EXPECT_FALSE(answers[0].witness.has_value());
  EXPECT_GT(answers[0].hidden_gap, 0);
  // A selected number is not rounded: its last bit shows.
  MustFind(
      OfVector("%1 = Constant() {value = f32[]{0.33333334}}\n%2 = Max(%0, %1)\nreturn \"y\" = %2"),
      OfVector("%1 = Constant() {value = f32[]{0.33333331}}\n%2 = Max(%0, %1)\nreturn \"y\" = %2"));
}

TEST(Witness, ReachesClipsAtHugeBounds) {
  const Graph f = OfVector("%1 = Clip(%0) {max = 1e30, min = -1e30}\nreturn \"y\" = %1");
  const Graph g = OfVector("return \"y\" = %0");
  const Witness witness = MustFind(f, g);
  EXPECT_GT(std::abs(witness.value_g), 1e30);
}

TEST(Witness, FindsTheOneNumberWhereOpenAndClosedBoundsDiffer) {
  const std::string head =
      "%1 = Constant() {value = f32[]{3.3}}\n%2 = Constant() {value = f32[]{0}}\n%3 = ";
  const Graph f = OfVector(head + "Greater(%0, %1)\n%4 = Where(%3, %0, %2)\nreturn \"y\" = %4");
  const Graph g =
      OfVector(head + "GreaterOrEqual(%0, %1)\n%4 = Where(%3, %0, %2)\nreturn \"y\" = %4");
  EXPECT_FLOAT_EQ(static_cast<float>(MustFind(f, g).value_g), 3.3F);
}

TEST(Witness, FindsTheGapBetweenTwoVersionsOfABound) {
  const auto bounded = [](std::string_view bounds) {
    return OfVector(Cat("%1 = Constant() {value = f32[1,4]", bounds,
                        "}\n%2 = LessOrEqual(%0, %1)\n%3 = Constant() {value = f32[]{0}}\n",
                        "%4 = Where(%2, %0, %3)\nreturn \"y\" = %4"));
  };
  const Witness witness =
      MustFind(bounded("{-1.5, 1.25, 0.5, -0.5}"), bounded("{-1.5, 1.25, 0.5, -0.500001}"));
  EXPECT_NEAR(std::abs(witness.value_f - witness.value_g), 0.5, 1e-5);
  const auto whole = [](int bound) {
    return Parse(
        Cat("graph \"g\" {\n%0 = Input() {name = \"x\", dtype = \"i32\", shape = []}\n%1 = "
            "Constant() {value = i32[]{",
            bound, "}}\n%2 = GreaterOrEqual(%0, %1)\nreturn \"y\" = %2\n}"));
  };
  MustFind(whole(123456), whole(123457));
}

constexpr std::string_view kConv =
    "graph \"g\" {\n%0 = Input() {name = \"x\", shape = [1, 1, 5, 5]}\n"
    "%1 = Constant() {symbol = \"w\", value = f32[1,1,3,3]{1, 2, 3, 4, 5, 6, 7, 8, 9}}\n"
    "%2 = Constant() {symbol = \"b\", value = f32[1]{1e-3}}\n";

TEST(Witness, FindsADroppedBias) {
  const Graph f = Parse(Cat(
      kConv, "%3 = Conv(%0, %1, %2) {dilations = [1, 1], pads = [1, 1, 1, 1], strides = [1, 1]}\n",
      "return \"y\" = %3\n}"));
  const Graph g = Parse(
      Cat(kConv, "%3 = Conv(%0, %1) {dilations = [1, 1], pads = [1, 1, 1, 1], strides = [1, 1]}\n",
          "return \"y\" = %3\n}"));
  EXPECT_NEAR(MustFind(f, g).gap, 1e-3, 1e-8);
}

TEST(Witness, ReportsWrongBordersFromRightInteriors) {
  const Graph f = Parse(Cat(
      kConv, "%3 = Conv(%0, %1, %2) {dilations = [1, 1], pads = [1, 1, 1, 1], strides = [1, 1]}\n",
      "return \"y\" = %3\n}"));
  const Graph g = Parse(
      Cat(kConv, "%3 = Pad(%0) {mode = \"edge\", pads = [0, 0, 1, 1, 0, 0, 1, 1]}\n",
          "%4 = Conv(%3, %1, %2) {dilations = [1, 1], pads = [0, 0, 0, 0], strides = [1, 1]}\n",
          "return \"y\" = %4\n}"));
  const Box inside{{0, 0, 1, 1}, {1, 1, 4, 4}};
  const Box corner{{0, 0, 4, 4}, {1, 1, 5, 5}};
  const std::vector<WitnessAnswer> answers = Find(f, g, {{0, inside}, {0, corner}});
  EXPECT_FALSE(answers[0].witness.has_value());
  EXPECT_TRUE(Holds(f, g, answers[1])) << answers[1].reason;
  EXPECT_EQ(answers[1].witness->element, (Shape{0, 0, 4, 4}));
}

/// Eight 3x3 convolutions of 4 channels with relu between them; `bump` is added to one weight of
/// the fourth.
Graph DeepChain(double bump) {
  Rng rng(5);
  GraphBuilder builder;
  ValueId value = builder.Input("x", {DType::kF32, {1, 4, 8, 8}});
  for (int layer = 0; layer < 8; ++layer) {
    std::vector<double> weights(4 * 4 * 9);
    for (double& weight : weights) weight = rng.Normal() / 6;
    if (layer == 3) weights[17] += bump;
    const ValueId w = builder.Constant(Tensor::FromDoubles({DType::kF32, {4, 4, 3, 3}}, weights),
                                       Cat("w", layer));
    value = *builder.Add(
        "Conv", {value, w},
        {{"strides", Ints{1, 1}}, {"dilations", Ints{1, 1}}, {"pads", Ints{1, 1, 1, 1}}});
    value = *builder.Add("Relu", {value});
  }
  builder.Output("y", value);
  return *builder.Build();
}

TEST(Witness, FindsASmallChangeOfOneWeightInADeepNetwork) {
  const Graph f = DeepChain(0);
  const Witness witness = MustFind(f, DeepChain(0x1p-12));
  EXPECT_LT(witness.gap, 1e-2 * std::abs(witness.value_f));
  MustNotFind(f, DeepChain(0));
  const std::vector<WitnessAnswer> one_ulp = Find(f, DeepChain(0x1p-25));
  EXPECT_FALSE(one_ulp[0].witness.has_value());
  EXPECT_GT(one_ulp[0].hidden_gap, 0);
}

TEST(Witness, SeparatesNormalizationsOnlyWhereTheyDiffer) {
  const Graph f = OfVector("%1 = Softmax(%0) {axis = 0}\nreturn \"y\" = %1");
  const std::string shift = "%1 = Constant() {value = f32[]{1.5}}\n%2 = ";
  MustNotFind(f, OfVector(shift + "Add(%0, %1)\n%3 = Softmax(%2) {axis = 0}\nreturn \"y\" = %3"));
  MustFind(f, OfVector(shift + "Mul(%0, %1)\n%3 = Softmax(%2) {axis = 0}\nreturn \"y\" = %3"));
  const std::string scale =
      "%1 = Constant() {symbol = \"s\", value = f32[4]{1, 2, 3, 4}}\n%2 = LayerNormalization(%0, "
      "%1) {axis = 0, epsilon = ";
  const Graph norm = OfVector(scale + "1e-5}\nreturn \"y\" = %2");
  MustFind(norm, OfVector(scale + "1.001e-5}\nreturn \"y\" = %2"));
  MustFind(OfVector("%1 = Gelu(%0)\nreturn \"y\" = %1"),
           OfVector("%1 = Gelu(%0) {approximate = \"tanh\"}\nreturn \"y\" = %1"));
}

TEST(Witness, RoundedConstantsOfDefinitionsSeparateNothing) {
  const Graph f = OfVector("%1 = HardSwish(%0)\nreturn \"y\" = %1");
  const auto spelled = [](std::string_view sixth) {
    return OfVector(Cat("%1 = HardSigmoid(%0) {alpha = ", sixth,
                        ", beta = 0.5}\n%2 = Mul(%0, %1)\nreturn \"y\" = %2"));
  };
  MustNotFind(f, spelled("0.16666667163372040"));  // 1/6 as a float
  MustNotFind(f, spelled("0.16666666666666666"));  // and as a double
  MustFind(f, spelled("0.1667"));
  MustFind(f, OfVector("%1 = HardSwish(%0)\n%2 = Relu(%1)\nreturn \"y\" = %2"));
}

/// Beyond 37 the double of sigmoid(x) is 1; its rounding still hides what 1 - sigmoid(x) loses.
TEST(Witness, SaturatedFunctionsRound) {
  const Graph f = OfVector("%1 = Sigmoid(%0)\nreturn \"y\" = %1");
  const Graph g = OfVector(
      "%1 = Constant() {value = f32[]{-1.0000001192092896}}\n%2 = Mul(%0, %1)\n"
      "%3 = Sigmoid(%2)\n%4 = Constant() {value = f32[]{1}}\n%5 = Sub(%4, %3)\n"
      "return \"y\" = %5");
  MustNotFind(f, g);
  EXPECT_GT(Find(f, g)[0].hidden_gap, 0);
}

TEST(Witness, SpellsOutGelu) {
  const Graph f = OfVector("%1 = Gelu(%0)\nreturn \"y\" = %1");
  const Graph g = OfVector(
      "%1 = Constant() {value = f32[]{2}}\n%2 = Sqrt(%1)\n%3 = Div(%0, %2)\n%4 = Erf(%3)\n%5 = "
      "Constant() {value = f32[]{1}}\n"
      "%6 = Add(%4, %5)\n%7 = Mul(%0, %6)\n%8 = Constant() {value = f32[]{0.5}}\n%9 = Mul(%7, "
      "%8)\nreturn \"y\" = %9");
  MustNotFind(f, g);
}

Graph Lookup(double last) {
  return Parse(Cat("graph \"g\" {\n%0 = Input() {dtype = \"i64\", name = \"ids\", shape = [3]}\n",
                   "%1 = Constant() {symbol = \"t\", value = f32[7,1]{1, 2, 3, 4, 5, 6, ", last,
                   "}}\n", "%2 = Gather(%1, %0) {axis = 0}\nreturn \"y\" = %2\n}"));
}

TEST(Witness, DrawsIndicesFromTheTable) {
  const Witness witness = MustFind(Lookup(7), Lookup(7.5));
  for (int64_t id : witness.inputs[0].ToInts()) EXPECT_TRUE(id >= -7 && id < 7);
  EXPECT_EQ(witness.value_g, 7.5);
}

TEST(Witness, ExactCastsAreIdentitiesOverTheReals) {
  const auto there_and_back = [](int exact) {
    return OfVector(Cat("%1 = Cast(%0) {exact = ", exact, ", to = \"f16\"}\n",
                        "%2 = Cast(%1) {to = \"f32\"}\nreturn \"y\" = %2"));
  };
  const Graph same = OfVector("return \"y\" = %0");
  MustFind(there_and_back(0), same);
  MustNotFind(there_and_back(1), same);
}

TEST(Witness, NaNAgainstANumberIsOne) {
  const Graph f = OfVector("%1 = Div(%0, %0)\nreturn \"y\" = %1");
  const Graph g = OfVector(
      "%1 = Constant() {value = f32[4]{1, 1, 1, 1}}\n%2 = Mul(%0, %1)\n%3 = Sub(%2, %0)\n%4 = "
      "Add(%3, %1)\nreturn \"y\" = %4");
  const auto answers = Find(f, g);
  ASSERT_TRUE(answers[0].witness.has_value()) << answers[0].reason;
  EXPECT_TRUE(answers[0].witness->undefined);
  EXPECT_TRUE(std::isnan(answers[0].witness->value_f));
  EXPECT_EQ(answers[0].witness->value_g, 1);
  // Doubles overflow, numbers do not.
  const Graph large = OfVector(
      "%1 = Constant() {value = f32[]{1e30}}\n%2 = Mul(%0, %1)\n"
      "%3 = Exp(%2)\n%4 = Sub(%3, %3)\nreturn \"y\" = %4");
  const Graph zero = OfVector("%1 = Sub(%0, %0)\nreturn \"y\" = %1");
  EXPECT_FALSE(Find(large, zero)[0].witness.has_value());
}

TEST(Witness, NoComparisonOfNaNHolds) {
  // At x < 0 the logarithm is NaN: the minimum is, too, but the choice is its other branch.
  const std::string head = "%1 = Constant() {value = f32[]{6}}\n%2 = Log(%0)\n";
  const Graph minimum = OfVector(head + "%3 = Min(%2, %1)\nreturn \"y\" = %3");
  for (const char* choice :
       {"Less(%2, %1)\n%4 = Where(%3, %2, %1)", "LessOrEqual(%2, %1)\n%4 = Where(%3, %2, %1)",
        "Equal(%2, %1)\n%4 = Where(%3, %2, %1)"}) {
    const Graph other = OfVector(Cat(head, "%3 = ", choice, "\nreturn \"y\" = %4"));
    const auto answers = Find(other, minimum);
    ASSERT_TRUE(answers[0].witness.has_value()) << choice << ": " << answers[0].reason;
    EXPECT_EQ(answers[0].witness->value_f, 6) << choice;
  }
}

TEST(Witness, NumbersBehindComparisonsOfNaN) {
  // At x < 0 both comparisons are false: one program chooses 1, the other 2.
  const std::string head =
      "%1 = Constant() {value = f32[]{6}}\n%2 = Constant() {value = f32[4]{1, 1, 1, 1}}\n"
      "%3 = Constant() {value = f32[4]{2, 2, 2, 2}}\n%4 = Log(%0)\n";
  const Graph f =
      OfVector(head + "%5 = LessOrEqual(%4, %1)\n%6 = Where(%5, %3, %2)\nreturn \"y\" = %6");
  const Graph g = OfVector(head + "%5 = Less(%1, %4)\n%6 = Where(%5, %2, %3)\nreturn \"y\" = %6");
  const auto answers = Find(f, g);
  ASSERT_TRUE(answers[0].witness.has_value()) << answers[0].reason;
  EXPECT_FALSE(answers[0].witness->undefined);
  EXPECT_EQ(answers[0].witness->value_f, 1);
  EXPECT_EQ(answers[0].witness->value_g, 2);
  EXPECT_GT(answers[0].witness->gap, 0.9);
}

TEST(Witness, DecisionsOfRoundingAreHidden) {
  // Two equal numbers computed in two ways: rounding reports which is larger.
  const std::string head =
      "%1 = Constant() {value = f32[]{3}}\n%2 = Div(%0, %1)\n%3 = Reciprocal(%1)\n%4 = Mul(%0, "
      "%3)\n";
  const Graph f = OfVector(head +
                           "%5 = Concat(%2, %4) {axis = 0}\n%6 = Reshape(%5) {shape = [2, 4]}\n"
                           "%7 = ArgMax(%6) {axis = 0, keepdims = 0}\nreturn \"y\" = %7");
  const Graph g = OfVector(head +
                           "%5 = Concat(%4, %2) {axis = 0}\n%6 = Reshape(%5) {shape = [2, 4]}\n"
                           "%7 = ArgMax(%6) {axis = 0, keepdims = 0}\nreturn \"y\" = %7");
  MustNotFind(f, g);
  EXPECT_EQ(Find(f, g)[0].hidden_gap, 1);
}

TEST(Witness, SaysThatOnlyStoredNumbersDiffer) {
  const auto graph = [](double weight) {
    return OfVector(
        Cat("%1 = Constant() {value = f32[]{0}}\n%2 = Constant() {symbol = \"w\", value = "
            "f32[4]{1, 2, 3, ",
            weight, "}}\n%3 = Mul(%2, %1)\n%4 = Add(%0, %3)\nreturn \"y\" = %4"));
  };
  EXPECT_THAT(MustNotFind(graph(4), graph(5)), HasSubstr("stored numbers only"));
}

TEST(Witness, StopsInTimeAndRefusesWhatDoesNotFit) {
  const Graph f = OfVector("return \"y\" = %0");
  const Graph g = OfVector("%1 = Relu(%0)\nreturn \"y\" = %1");
  WitnessOptions options;
  options.deadline = Deadline::After(0);
  EXPECT_THAT(MustNotFind(f, g, {}, options), HasSubstr("out of time"));
  const WitnessQuery outside{0, {{0}, {5}}};
  EXPECT_EQ(FindWitnesses(f, g, std::span(&outside, 1), {}).status().code(),
            absl::StatusCode::kInvalidArgument);
  const WitnessQuery whole{0, {{0}, {4}}};
  EXPECT_EQ(FindWitnesses(f, Lookup(1), std::span(&whole, 1), {}).status().code(),
            absl::StatusCode::kInvalidArgument);
  const Graph positive = OfVector("%1 = Abs(%0)\n%2 = Relu(%1)\nreturn \"y\" = %2");
  EXPECT_THAT(MustNotFind(OfVector("%1 = Abs(%0)\nreturn \"y\" = %1"), positive),
              HasSubstr("largest relative gap in double precision 0"));
}

TEST(Witness, TheSameSeedGivesTheSameWitness) {
  const Graph f = DeepChain(0);
  const Graph g = DeepChain(1e-3);
  const Witness first = MustFind(f, g);
  const Witness second = MustFind(f, g);
  EXPECT_EQ(first.inputs, second.inputs);
  EXPECT_EQ(first.element, second.element);
  EXPECT_EQ(first.value_f, second.value_f);
}

}  // namespace
}  // namespace mendel
