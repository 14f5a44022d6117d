#include "verifier/compare.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "graph/evaluate.h"
#include "graph/text.h"
#include "verifier/constants.h"

namespace mendel {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Graph Parse(const std::string& body) {
  auto graph = ParseGraph("graph \"g\" {\n" + body + "\n}");
  EXPECT_TRUE(graph.ok()) << graph.status() << "\n" << body;
  return graph.ok() ? *graph : Graph();
}

std::string Replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

CompareOptions Exact() {
  CompareOptions options;
  options.verifier.weights = WeightMode::kExact;
  return options;
}

CompareReport Compare(const std::string& a, const std::string& b,
                      const CompareOptions& options = Exact()) {
  auto report = ComparePrograms(Parse(a), Parse(b), options);
  EXPECT_TRUE(report.ok()) << report.status();
  if (!report.ok()) return {};
  // The second opinion evaluates everything and must say the same.
  CompareOptions slow = options;
  slow.cut_points = false;
  const auto second = ComparePrograms(Parse(a), Parse(b), slow);
  EXPECT_TRUE(second.ok()) << second.status();
  if (second.ok()) {
    EXPECT_EQ(report->verdict, second->verdict) << report->reason << " / " << second->reason;
  }
  return *report;
}

/// The witness's inputs give the values that it states, in the reference evaluation.
void ExpectTrue(const std::string& a, const std::string& b, const CompareReport& report) {
  int witnesses = 0;
  for (size_t k = 0; k < report.outputs.size(); ++k) {
    for (const ComparedBox& box : report.outputs[k].boxes) {
      if (!box.witness.has_value()) continue;
      ++witnesses;
      const Witness& witness = *box.witness;
      EXPECT_TRUE(box.box.Contains(witness.element));
      EXPECT_GT(witness.gap, 0);
      std::vector<HostValue> inputs;
      for (const Tensor& input : witness.inputs) inputs.push_back(HostValue::FromTensor(input));
      for (const auto& [text, value] :
           {std::pair(a, witness.value_f), std::pair(b, witness.value_g)}) {
        const Graph graph = Parse(text);
        const auto outputs = Evaluate(graph, inputs);
        ASSERT_TRUE(outputs.ok()) << outputs.status();
        const HostValue& output = (*outputs)[k];
        EXPECT_NEAR(output.At(FlatIndex(output.type.shape, witness.element)), value,
                    1e-9 * (1 + std::abs(value)));
      }
    }
  }
  EXPECT_GT(witnesses, 0) << report.reason;
}

const char kNet[] = R"(
  %0 = Input() {name = "x", shape = [2, 3]}
  %1 = Constant() {symbol = "w", value = f32[3,4]{1, -2, 3, 4, 5, -6, 7, 8, 9, 0.1, 11, -12}}
  %2 = Constant() {symbol = "b", value = f32[4]{1, 2, 3, 0.25}}
  %3 = MatMul(%0, %1) "product"
  %4 = Add(%3, %2) "sum"
  return "y" = %4)";

TEST(MatchInterfaces, ByNameByMapAndByPosition) {
  const char kTwo[] = R"(
  %0 = Input() {name = "x", shape = [2]}
  %1 = Input() {name = "z", shape = [3]}
  %2 = Relu(%0)
  %3 = Relu(%1)
  return "p" = %2, "q" = %3)";
  const char kOther[] = R"(
  %0 = Input() {name = "z", shape = [3]}
  %1 = Input() {name = "x", shape = [2]}
  %2 = Relu(%0)
  %3 = Relu(%1)
  return "q" = %2, "p" = %3)";
  const auto by_name = MatchInterfaces(Parse(kTwo), Parse(kOther), {});
  ASSERT_TRUE(by_name.ok()) << by_name.status();
  EXPECT_THAT(by_name->notes, IsEmpty());
  EXPECT_EQ(by_name->graph.outputs()[0].name, "p");
  EXPECT_EQ(by_name->graph.type(by_name->graph.outputs()[0].value).shape, Shape({2}));
  EXPECT_EQ(InputName(by_name->graph.node(by_name->graph.inputs()[0])), "x");

  const std::string renamed =
      Replaced(Replaced(kOther, "name = \"x\"", "name = \"u\""), "\"p\" =", "\"v\" =");
  const auto by_position = MatchInterfaces(Parse(kTwo), Parse(renamed), {});
  ASSERT_TRUE(by_position.ok()) << by_position.status();
  EXPECT_THAT(by_position->notes,
              ElementsAre("input 'x' of A is matched with 'u' of B by position",
                          "output 'p' of A is matched with 'v' of B by position"));
  const auto by_map = MatchInterfaces(Parse(kTwo), Parse(renamed), {{"x", "u"}, {"p", "v"}});
  ASSERT_TRUE(by_map.ok()) << by_map.status();
  EXPECT_THAT(by_map->notes, IsEmpty());
}

TEST(MatchInterfaces, RefusesWithNames) {
  const Graph net = Parse(kNet);
  const auto message = [&](const std::string& from, const std::string& to,
                           const std::map<std::string, std::string>& names) {
    const auto matched = MatchInterfaces(net, Parse(Replaced(kNet, from, to)), names);
    EXPECT_EQ(matched.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(matched.status().message());
  };
  EXPECT_EQ(message("shape = [2, 3]", "shape = [5, 3]", {}),
            "input 'x' differs in shape: f32[2,3] in A, f32[5,3] in B");
  EXPECT_THAT(
      message("%4 = Add(%3, %2) \"sum\"", "%5 = Add(%3, %2)\n  %4 = Cast(%5) {to = \"f16\"}", {}),
      HasSubstr("output 'y' differs in dtype: f32[2,4] in A, f16[2,4] in B"));
  EXPECT_THAT(message("\"y\" = %4", "\"y\" = %4, \"s\" = %3", {}),
              HasSubstr("only B has 's' f32[2,4]"));
  EXPECT_THAT(message("\"b\"", "\"b\"", {{"x", "u"}}),
              HasSubstr("input 'x' of A is to be paired with 'u'"));
  EXPECT_THAT(message("\"b\"", "\"b\"", {{"nothing", "b"}}),
              HasSubstr("'nothing' and 'b' are to be paired"));
}

TEST(MatchInterfaces, PairsWeights) {
  CompareOptions symbolic;
  const std::string other =
      Replaced(Replaced(kNet, "\"w\"", "\"v\""), "%4 = Add(%3, %2)", "%4 = Add(%2, %3)");
  const Graph a = Parse(kNet);
  const auto unpaired = MatchInterfaces(a, Parse(other), {});
  EXPECT_NE(ComparePrograms(a, unpaired->graph, symbolic)->verdict, Verdict::kEquivalent);
  const auto paired = MatchInterfaces(a, Parse(other), {{"w", "v"}});
  ASSERT_TRUE(paired.ok()) << paired.status();
  EXPECT_EQ(ComparePrograms(a, paired->graph, symbolic)->verdict, Verdict::kEquivalent);
}

TEST(Compare, Equivalent) {
  const CompareReport same = Compare(kNet, kNet);
  EXPECT_EQ(same.verdict, Verdict::kEquivalent);
  EXPECT_THAT(same.draws, IsEmpty());
  const std::string around = Replaced(kNet, "%4 = Add(%3, %2)",
                                      "%5 = Add(%2, %2)\n  %6 = Add(%3, %5)\n  %4 = Sub(%6, %2)");
  for (const WeightMode mode : {WeightMode::kExact, WeightMode::kSymbolic}) {
    CompareOptions options = Exact();
    options.verifier.weights = mode;
    const CompareReport report = Compare(kNet, around, options);
    EXPECT_EQ(report.verdict, Verdict::kEquivalent) << report.reason;
    EXPECT_LE(report.bound_log2, -80);
    EXPECT_GE(report.draws.size(), 1u);
    EXPECT_THAT(report.outputs[0].boxes, IsEmpty());
  }
  CompareOptions many = Exact();
  many.verifier.min_tests = 7;
  EXPECT_EQ(Compare(kNet, around, many).draws.size(), 7u);
}

TEST(Compare, DifferentEverywhere) {
  const std::string other = Replaced(kNet, "%4 = Add(%3, %2)", "%4 = Sub(%3, %2)");
  const CompareReport report = Compare(kNet, other);
  EXPECT_EQ(report.verdict, Verdict::kDifferent) << report.reason;
  EXPECT_EQ(report.outputs[0].wrong_elements, 8);
  ASSERT_EQ(report.outputs[0].boxes.size(), 1u);
  EXPECT_EQ(report.outputs[0].boxes[0].box, Box::Whole({2, 4}));
  ExpectTrue(kNet, other, report);
  ASSERT_EQ(report.earliest.size(), 1u);
  EXPECT_EQ(report.earliest[0].name, "sum");
  EXPECT_EQ(report.earliest[0].op, "Add");
}

TEST(Compare, WhatRoundingHidesIsUnproven) {
  const CompareReport report = Compare(kNet, Replaced(kNet, "0.1,", "0.10000001,"));
  EXPECT_EQ(report.verdict, Verdict::kUnproven);
  EXPECT_GT(report.hidden_gap, 0);
  EXPECT_THAT(report.reason, HasSubstr("formally different, not seen in floats"));
  EXPECT_EQ(report.outputs[0].wrong_elements, 2);
}

/// One element of one weight.
TEST(Compare, OneWeightIsPartialInExactModeAndReportedInSymbolic) {
  const std::string other = Replaced(kNet, "0.1,", "0.101,");
  const CompareReport exact = Compare(kNet, other);
  EXPECT_EQ(exact.verdict, Verdict::kPartial) << exact.reason;
  EXPECT_LE(exact.bound_log2, -80);
  EXPECT_TRUE(exact.outputs[0].regions_known);
  EXPECT_EQ(exact.outputs[0].wrong_elements, 2);
  ASSERT_EQ(exact.outputs[0].boxes.size(), 1u);
  EXPECT_EQ(exact.outputs[0].boxes[0].box, (Box{{0, 1}, {2, 2}}));
  ExpectTrue(kNet, other, exact);
  ASSERT_EQ(exact.earliest.size(), 1u);
  EXPECT_EQ(exact.earliest[0].name, "w");

  const CompareReport symbolic = Compare(kNet, other, CompareOptions());
  EXPECT_EQ(symbolic.verdict, Verdict::kEquivalent);
  for (const CompareReport* report : {&exact, &symbolic}) {
    ASSERT_EQ(report->weights.size(), 1u);
    EXPECT_EQ(report->weights[0].name, "w");
    EXPECT_EQ(report->weights[0].elements, 12);
    EXPECT_EQ(report->weights[0].differing, 1);
    EXPECT_GT(report->weights[0].largest_ulps, 1e4);
  }
}

/// Two biases that happen to be zero are two weights, and one tensor.
TEST(Compare, ZeroBiasesAreOneTensorInExactModeOnly) {
  const char kBiases[] = R"(
  %0 = Input() {name = "x", shape = [2]}
  %1 = Constant() {symbol = "p", value = f32[2]{0, 0}}
  %2 = Constant() {symbol = "q", value = f32[2]{0, 0}}
  %3 = Add(%0, %1)
  %4 = Add(%0, %2)
  %5 = Mul(%3, %4)
  return "y" = %5)";
  const std::string merged = Replaced(Replaced(kBiases, "%4 = Add(%0, %2)", "%4 = Add(%0, %1)"),
                                      "Mul(%3, %4)", "Mul(%4, %4)");
  EXPECT_EQ(Compare(kBiases, merged).verdict, Verdict::kEquivalent);
  EXPECT_EQ(Compare(kBiases, Replaced(merged, "%4 = Add(%0, %1)", "%4 = Relu(%0)")).verdict,
            Verdict::kDifferent);
  const CompareReport symbolic = Compare(kBiases, merged, CompareOptions());
  EXPECT_EQ(symbolic.verdict, Verdict::kUnproven)
      << "stored values are equal, so that no witness exists";
}

/// In symbolic mode the question is about programs: values of weights that differ are no witness.
TEST(Compare, WeightsAreNoWitnessInSymbolicMode) {
  const char kUnknown[] = R"(
  %0 = Input() {name = "x", shape = [3]}
  %1 = Constant() {symbol = "w", value = f32[3]{1, 2, 3}}
  %2 = Sin(%0)
  %3 = Cos(%0)
  %4 = Mul(%2, %2)
  %5 = Mul(%3, %3)
  %6 = Add(%4, %5)
  %7 = Mul(%6, %1)
  return "y" = %7)";
  const char kOne[] = R"(
  %0 = Input() {name = "x", shape = [3]}
  %1 = Constant() {symbol = "w", value = f32[3]{1, 2, 4}}
  %2 = Sub(%0, %0)
  %3 = Add(%2, %1)
  return "y" = %3)";
  const CompareReport symbolic = Compare(kUnknown, kOne, CompareOptions());
  EXPECT_EQ(symbolic.verdict, Verdict::kUnproven);
  EXPECT_THAT(symbolic.lacking, ElementsAre("Cos", "Sin"));
  EXPECT_THAT(symbolic.reason, HasSubstr("no witness"));
  EXPECT_EQ(symbolic.weights.size(), 1u);
  EXPECT_NE(Compare(kUnknown, kOne).verdict, Verdict::kEquivalent);
}

TEST(Compare, UndefinedWhereTheOtherIsANumberIsDifferent) {
  const char kPlain[] =
      "  %0 = Input() {name = \"x\", shape = [4]}\n  %1 = Relu(%0)\n  return \"y\" = %1";
  const char kQuotient[] = R"(
  %0 = Input() {name = "x", shape = [4]}
  %1 = Relu(%0)
  %2 = Mul(%1, %1)
  %3 = Div(%2, %1)
  return "y" = %3)";
  const CompareReport report = Compare(kPlain, kQuotient);
  EXPECT_EQ(report.verdict, Verdict::kDifferent);
  const std::optional<Witness>& witness = report.outputs[0].boxes[0].witness;
  ASSERT_TRUE(witness.has_value());
  EXPECT_TRUE(witness->undefined);
  EXPECT_EQ(witness->value_f, 0);
  EXPECT_TRUE(std::isnan(witness->value_g));
}

TEST(Compare, DivisionByZeroForEveryInputIsDifferent) {
  // All taps of the window lie in the padding of rows: the mean is zero whatever x is.
  const std::string mean = R"(
  %0 = Input() {name = "x", shape = [1, 2, 1, 4]}
  %1 = AveragePool(%0) {kernel_shape = [2, 1], strides = [1, 1], dilations = [2, 1], pads = [1, 0, 1, 0], count_include_pad = 1}
  %2 = Constant() {symbol = "w", value = f32[]{1.8}})";
  const CompareReport report = Compare(mean + "\n%3 = Div(%1, %2)\nreturn \"y\" = %3",
                                       mean + "\n%3 = Div(%2, %1)\nreturn \"y\" = %3");
  EXPECT_EQ(report.verdict, Verdict::kDifferent);
  EXPECT_TRUE(report.outputs[0].boxes[0].witness->undefined);
}

TEST(Compare, WithoutRegionsStillNeedsAWitness) {
  CompareOptions options = Exact();
  options.regions = false;
  const CompareReport report = Compare(kNet, Replaced(kNet, "0.1,", "0.2,"), options);
  EXPECT_EQ(report.verdict, Verdict::kDifferent);
  EXPECT_FALSE(report.outputs[0].regions_known);
  EXPECT_EQ(report.outputs[0].wrong_elements, 2);
  EXPECT_EQ(report.outputs[0].boxes[0].box, Box::Whole({2, 4}));
}

TEST(Compare, OutOfTime) {
  CompareOptions options = Exact();
  options.verifier.deadline = Deadline::After(-1);
  const CompareReport report = Compare(kNet, Replaced(kNet, "0.1,", "0.2,"), options);
  EXPECT_EQ(report.verdict, Verdict::kUnproven);
  EXPECT_EQ(report.reason, "out of time");
}

/// The first elements differ. The others have one formal value, and B's is NaN for some inputs.
TEST(Compare, ElementsThatAreNotDefinedAlikeAreNotRight) {
  const std::string start =
      "%0 = Input() {name = \"x\", shape = [2]}\n"
      "%1 = Constant() {value = f32[2]{1, 0}}\n";
  const std::string a = start + "%2 = Add(%0, %1)\nreturn \"y\" = %2";
  const std::string more = "%2 = Constant() {value = f32[2]{2, 0}}\n%3 = Add(%0, %2)\n";
  EXPECT_EQ(Compare(a, start + more + "return \"y\" = %3").verdict, Verdict::kPartial);
  for (const std::string undefined :
       {"%4 = Log(%0)\n%5 = Sub(%4, %4)\n%6 = Add(%3, %5)\n",
        "%4 = Constant() {value = f32[2]{1, inf}}\n%5 = Sub(%4, %4)\n%6 = Add(%3, %5)\n",
        "%4 = Mul(%3, %0)\n%6 = Div(%4, %0)\n"}) {
    const CompareReport report = Compare(a, start + more + undefined + "return \"y\" = %6");
    EXPECT_EQ(report.verdict, Verdict::kDifferent) << undefined;
    EXPECT_FALSE(report.outputs[0].regions_known) << undefined;
    ASSERT_EQ(report.outputs[0].boxes.size(), 1u) << undefined;
    EXPECT_EQ(report.outputs[0].boxes[0].box, Box::Whole({2})) << undefined;
    EXPECT_EQ(report.bound_log2, 0);
  }
}

TEST(ShareEqualConstants, ByTypeAndBytes) {
  const auto graph = [](const std::string& constant) {
    return Parse("  %0 = Input() {name = \"x\", shape = [2]}\n  %1 = Constant() {" + constant +
                 "}\n  %2 = Cast(%1) {to = \"f32\"}\n  %3 = Add(%0, %2)\n  return \"y\" = %3");
  };
  const auto shared = [&](const std::string& a, const std::string& b) {
    const auto pair = ShareEqualConstants(graph(a), graph(b));
    EXPECT_TRUE(pair.ok()) << pair.status();
    int symbols = 0;
    for (const Node& node : pair->first.nodes())
      symbols += IsConstant(node) && !SymbolName(node).empty() ? 1 : 0;
    return symbols > 0;
  };
  EXPECT_TRUE(shared("symbol = \"p\", value = f32[2]{0, 0}", "value = f32[2]{0, 0}"));
  EXPECT_FALSE(
      shared("symbol = \"p\", value = f32[2]{0, 0}", "symbol = \"p\", value = f32[2]{0, 1}"));
  EXPECT_FALSE(
      shared("symbol = \"p\", value = f32[2]{0, 0}", "symbol = \"p\", value = f16[2]{0, 0}"));
  EXPECT_FALSE(
      shared("symbol = \"p\", value = f32[2]{0, 0}", "symbol = \"p\", value = f32[1,2]{0, 0}"));
  EXPECT_FALSE(shared("symbol = \"p\", value = f32[1]{0}", "symbol = \"p\", value = f32[1]{0}"));
}

std::string OnVector(const std::string& dtype, const std::string& body) {
  return "%0 = Input() {name = \"x\", dtype = \"" + dtype + "\", shape = [2]}\n" + body;
}

TEST(Compare, IntegersAreExact) {
  const auto program = [](const std::string& op, const std::string& second) {
    return OnVector("i64", "%1 = Constant() {value = i64[2]{9007199254740992, " + second +
                               "}}\n%2 = " + op + "(%0, %1)\nreturn \"y\" = %2");
  };
  for (const std::string op : {"Equal", "Less", "Add", "Max"}) {
    const std::string a = program(op, "9007199254740993"), b = program(op, "9007199254740992");
    const CompareReport report = Compare(a, b);
    EXPECT_NE(report.verdict, Verdict::kEquivalent) << op;
    EXPECT_EQ(Compare(a, a).verdict, Verdict::kEquivalent) << op;
  }
}

TEST(Compare, IntegersWrap) {
  const auto sum = [](const std::string& first, const std::string& second) {
    return OnVector("i8", "%1 = Constant() {value = i8[]{" + first +
                              "}}\n%2 = Constant() {value = i8[]{" + second +
                              "}}\n%3 = Add(%0, %1)\n%4 = Add(%3, %2)\nreturn \"y\" = %4");
  };
  EXPECT_EQ(Compare(sum("100", "100"), sum("-56", "0")).verdict, Verdict::kEquivalent);
  EXPECT_NE(Compare(sum("100", "100"), sum("-55", "0")).verdict, Verdict::kEquivalent);
}

TEST(Compare, LiteralsStandForConstantsInTheirOwnType) {
  const auto third = [](const std::string& dtype, const std::string& literal) {
    return OnVector(dtype, "%1 = Constant() {value = " + dtype + "[]{" + literal +
                               "}}\n%2 = Mul(%0, %1)\nreturn \"y\" = %2");
  };
  const auto divided = [](const std::string& dtype) {
    return OnVector(
        dtype, "%1 = Constant() {value = " + dtype + "[]{3}}\n%2 = Div(%0, %1)\nreturn \"y\" = %2");
  };
  EXPECT_EQ(Compare(divided("f64"), third("f64", "0.3333333432674408")).verdict,
            Verdict::kDifferent);
  const CompareReport report = Compare(divided("f64"), third("f64", "0.3333333333333333"));
  EXPECT_EQ(report.verdict, Verdict::kEquivalent);
  EXPECT_GT(report.RoundedConstants(), 0);
}

TEST(Compare, NoLiteralIsRoundedWhereSomethingIsDecided) {
  for (const std::string decision : {"%3 = Floor(%2)", "%3 = Less(%2, %0)"}) {
    const std::string rest = "\n" + decision + "\nreturn \"y\" = %3";
    const CompareReport report = Compare(
        OnVector("f32", "%1 = Constant() {value = f32[]{3}}\n%2 = Div(%0, %1)" + rest),
        OnVector("f32",
                 "%1 = Constant() {value = f32[]{0.3333333432674408}}\n%2 = Mul(%0, %1)" + rest));
    EXPECT_NE(report.verdict, Verdict::kEquivalent) << decision;
  }
}

TEST(Compare, NoLiteralIsRoundedBehindAPoolOfDecisions) {
  const std::string input = "%0 = Input() {name = \"x\", shape = [1, 1, 4, 4]}\n";
  const std::string pool =
      " {kernel_shape = [2, 2], strides = [2, 2], dilations = [1, 1], pads = [0, 0, 0, 0]}\n";
  const auto last = [&](const std::string& factor) {
    return input + "%1 = Constant() {value = f32[]{" + factor + "}}\n%2 = Mul(%0, %1)\n" +
           "%3 = Floor(%2)\n%4 = MaxPool(%3)" + pool + "return \"y\" = %4";
  };
  const auto first = [&](const std::string& node) {
    return input + "%1 = Constant() {value = f32[]{" + node + "(%2, %1)\n" +
           "%4 = Floor(%3)\nreturn \"y\" = %4";
  };
  const std::string pooled = "}}\n%2 = MaxPool(%0)" + pool + "%3 = ";
  const std::string third = "0.3333333432674408";
  EXPECT_EQ(Compare(last(third), first(third + pooled + "Mul")).verdict, Verdict::kEquivalent);
  EXPECT_NE(Compare(last(third), first("3" + pooled + "Div")).verdict, Verdict::kEquivalent);
}

/// Attention masks: scores of -inf are added or chosen, at once or one after the other.
TEST(Compare, MasksAreAddedOrChosen) {
  const std::string inputs =
      "%0 = Input() {name = \"x\", shape = [2, 3]}\n%1 = Input() {name = \"c\", dtype = \"bool\", "
      "shape = [2, 3]}\n%2 = Input() {name = \"d\", dtype = \"bool\", shape = [3]}\n%3 = "
      "Constant() "
      "{value = f32[]{-inf}}\n%4 = Constant() {value = f32[]{0}}\n%5 = Constant() {value = "
      "f32[3]{0, 0, -inf}}\n%6 = Constant() {value = bool[3]{1, 1, 0}}\n";
  const auto softmax = [&](const std::string& nodes, int scores) {
    return inputs + nodes + "\n%20 = Softmax(%" + std::to_string(scores) +
           ") {axis = 1}\nreturn \"y\" = %20";
  };
  const std::string added = softmax("%7 = Where(%1, %4, %3)\n%8 = Add(%0, %7)", 8);
  const std::string chosen = softmax("%7 = Where(%1, %0, %3)", 7);
  EXPECT_EQ(Compare(added, chosen).verdict, Verdict::kEquivalent);
  EXPECT_NE(Compare(added, softmax("%7 = Where(%1, %3, %0)", 7)).verdict, Verdict::kEquivalent);
  EXPECT_NE(Compare(added, softmax("%7 = Where(%2, %0, %3)", 7)).verdict, Verdict::kEquivalent);
  const std::string both = softmax("%7 = And(%2, %1)\n%8 = Where(%7, %0, %3)", 8);
  const std::string in_turn = softmax(
      "%7 = Where(%1, %4, %3)\n%8 = Add(%7, %0)\n%9 = Where(%2, %4, %3)\n%10 = Add(%8, %9)", 10);
  EXPECT_EQ(Compare(in_turn, both).verdict, Verdict::kEquivalent);
  EXPECT_NE(Compare(in_turn, added).verdict, Verdict::kEquivalent);
  EXPECT_NE(Compare(in_turn, softmax("%7 = Or(%1, %2)\n%8 = Where(%7, %0, %3)", 8)).verdict,
            Verdict::kEquivalent);
  const std::string stored =
      softmax("%7 = Where(%1, %4, %3)\n%8 = Add(%0, %5)\n%9 = Add(%8, %7)", 9);
  EXPECT_EQ(Compare(stored, softmax("%7 = And(%6, %1)\n%8 = Where(%7, %0, %3)", 8)).verdict,
            Verdict::kEquivalent);
  EXPECT_NE(Compare(stored, added).verdict, Verdict::kEquivalent);
}

/// x + 0 is never -0, where x may be.
TEST(Compare, ChosenInfinitiesKeepTheSignsOfZeros) {
  const std::string inputs =
      "%0 = Input() {name = \"x\", shape = [3]}\n%1 = Input() {name = \"c\", dtype = \"bool\", "
      "shape "
      "= [3]}\n%2 = Constant() {value = f32[]{-inf}}\n%3 = Constant() {value = f32[]{0}}\n";
  const std::string added = inputs + "%5 = Where(%1, %3, %2)\n%6 = Add(%0, %5)\n";
  const std::string chosen = inputs + "%5 = Where(%1, %0, %2)\n";
  EXPECT_EQ(
      Compare(added + "%7 = Exp(%6)\nreturn \"y\" = %7", chosen + "%6 = Exp(%5)\nreturn \"y\" = %6")
          .verdict,
      Verdict::kEquivalent);
  EXPECT_NE(Compare(added + "%7 = Reciprocal(%6)\n%8 = Tanh(%7)\nreturn \"y\" = %8",
                    chosen + "%6 = Reciprocal(%5)\n%7 = Tanh(%6)\nreturn \"y\" = %7")
                .verdict,
            Verdict::kEquivalent);
}

/// log(x) is no number for x <= 0: the chosen infinity is one of its own.
TEST(Compare, ChosenInfinitiesDoNotAbsorbUndefinedValues) {
  const std::string inputs =
      "%0 = Input() {name = \"x\", shape = [3]}\n%1 = Input() {name = \"c\", dtype = \"bool\", "
      "shape "
      "= [3]}\n%2 = Constant() {value = f32[]{-inf}}\n%3 = Constant() {value = f32[]{0}}\n%4 = "
      "Log(%0)\n";
  const std::string added =
      inputs + "%5 = Where(%1, %3, %2)\n%6 = Add(%4, %5)\n%7 = Exp(%6)\nreturn \"y\" = %7";
  const std::string chosen = inputs + "%5 = Where(%1, %4, %2)\n%6 = Exp(%5)\nreturn \"y\" = %6";
  EXPECT_NE(Compare(added, chosen).verdict, Verdict::kEquivalent);
  const std::string tested = inputs + "%5 = IsNaN(%4)\n%6 = Where(%5, %3, %4)\nreturn \"y\" = %6";
  EXPECT_NE(Compare(tested, inputs + "return \"y\" = %4").verdict, Verdict::kEquivalent);
}

TEST(Compare, PaddingOfMinusInfinityAddsNothingToAMaximum) {
  const std::string input = "%0 = Input() {name = \"x\", shape = [1, 2, 4, 4]}\n";
  const std::string window = "kernel_shape = [3, 3], strides = [1, 1], dilations = [1, 1], ";
  const std::string padded = input +
                             "%1 = Pad(%0) {pads = [0, 0, 1, 1, 0, 0, 1, 1], mode = \"constant\", "
                             "value = -inf}\n%2 = MaxPool(%1) {" +
                             window + "pads = [0, 0, 0, 0]}\n";
  const std::string pool =
      input + "%1 = MaxPool(%0) {" + window + "pads = [1, 1, 1, 1]}\nreturn \"y\" = %1";
  EXPECT_EQ(Compare(pool, padded + "return \"y\" = %2").verdict, Verdict::kEquivalent);
  EXPECT_EQ(Compare(pool, padded + "%3 = Sub(%1, %1)\n%4 = MaxPool(%3) {" + window +
                              "pads = [0, 0, 0, 0]}\n%5 = Add(%2, %4)\nreturn \"y\" = %5")
                .verdict,
            Verdict::kDifferent);
}

TEST(Compare, TheLargestOfNothingIsTheLeastOfItsType) {
  const auto folded = [](const std::string& literal) {
    return OnVector("i32", "%1 = Constant() {value = i32[]{" + literal +
                               "}}\n%2 = Max(%0, %1)\nreturn \"y\" = %2");
  };
  const std::string reduced =
      OnVector("i32",
               "%1 = Constant() {value = i32[0]{}}\n%2 = ReduceMax(%1) {axes = [0], keepdims = 0}\n"
               "%3 = Max(%0, %2)\nreturn \"y\" = %3");
  EXPECT_EQ(Compare(reduced, folded("-2147483648")).verdict, Verdict::kEquivalent);
  EXPECT_NE(Compare(reduced, folded("0")).verdict, Verdict::kEquivalent);
}

}  // namespace
}  // namespace mendel
