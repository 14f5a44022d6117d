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
  options.judge.weights = WeightMode::kExact;
  return options;
}

CompareReport Compare(const std::string& a, const std::string& b, const CompareOptions& options = Exact()) {
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
      for (const auto& [text, value] : {std::pair(a, witness.value_f), std::pair(b, witness.value_g)}) {
        const Graph graph = Parse(text);
        const auto outputs = Evaluate(graph, inputs);
        ASSERT_TRUE(outputs.ok()) << outputs.status();
        const HostValue& output = (*outputs)[k];
        EXPECT_NEAR(output.At(FlatIndex(output.type.shape, witness.element)), value, 1e-9 * (1 + std::abs(value)));
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

  const std::string renamed = Replaced(Replaced(kOther, "name = \"x\"", "name = \"u\""), "\"p\" =", "\"v\" =");
  const auto by_position = MatchInterfaces(Parse(kTwo), Parse(renamed), {});
  ASSERT_TRUE(by_position.ok()) << by_position.status();
  EXPECT_THAT(by_position->notes, ElementsAre("input 'x' of A is matched with 'u' of B by position",
                                              "output 'p' of A is matched with 'v' of B by position"));
  const auto by_map = MatchInterfaces(Parse(kTwo), Parse(renamed), {{"x", "u"}, {"p", "v"}});
  ASSERT_TRUE(by_map.ok()) << by_map.status();
  EXPECT_THAT(by_map->notes, IsEmpty());
}

TEST(MatchInterfaces, RefusesWithNames) {
  const Graph net = Parse(kNet);
  const auto message = [&](const std::string& from, const std::string& to, const std::map<std::string, std::string>& names) {
    const auto matched = MatchInterfaces(net, Parse(Replaced(kNet, from, to)), names);
    EXPECT_EQ(matched.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(matched.status().message());
  };
  EXPECT_EQ(message("shape = [2, 3]", "shape = [5, 3]", {}), "input 'x' differs in shape: f32[2,3] in A, f32[5,3] in B");
  EXPECT_THAT(message("%4 = Add(%3, %2) \"sum\"", "%5 = Add(%3, %2)\n  %4 = Cast(%5) {to = \"f16\"}", {}),
              HasSubstr("output 'y' differs in dtype: f32[2,4] in A, f16[2,4] in B"));
  EXPECT_THAT(message("\"y\" = %4", "\"y\" = %4, \"s\" = %3", {}), HasSubstr("only B has 's' f32[2,4]"));
  EXPECT_THAT(message("\"b\"", "\"b\"", {{"x", "u"}}), HasSubstr("input 'x' of A is to be paired with 'u'"));
  EXPECT_THAT(message("\"b\"", "\"b\"", {{"nothing", "b"}}), HasSubstr("'nothing' and 'b' are to be paired"));
}

TEST(MatchInterfaces, PairsWeights) {
  CompareOptions symbolic;
  const std::string other = Replaced(Replaced(kNet, "\"w\"", "\"v\""), "%4 = Add(%3, %2)", "%4 = Add(%2, %3)");
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
  const std::string around = Replaced(kNet, "%4 = Add(%3, %2)", "%5 = Add(%2, %2)\n  %6 = Add(%3, %5)\n  %4 = Sub(%6, %2)");
  for (const WeightMode mode : {WeightMode::kExact, WeightMode::kSymbolic}) {
    CompareOptions options = Exact();
    options.judge.weights = mode;
    const CompareReport report = Compare(kNet, around, options);
    EXPECT_EQ(report.verdict, Verdict::kEquivalent) << report.reason;
    EXPECT_LE(report.bound_log2, -80);
    EXPECT_GE(report.draws.size(), 1u);
    EXPECT_THAT(report.outputs[0].boxes, IsEmpty());
  }
  CompareOptions many = Exact();
  many.judge.min_tests = 7;
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

/// One element of one weight, by one unit in the last place.
TEST(Compare, OneUlpIsPartialInExactModeAndReportedInSymbolic) {
  const std::string other = Replaced(kNet, "0.1,", "0.10000001,");
  const CompareReport exact = Compare(kNet, other);
  EXPECT_EQ(exact.verdict, Verdict::kPartial) << exact.reason;
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
    EXPECT_EQ(report->weights[0].largest_ulps, 1);
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
  const std::string merged = Replaced(Replaced(kBiases, "%4 = Add(%0, %2)", "%4 = Add(%0, %1)"), "Mul(%3, %4)", "Mul(%4, %4)");
  EXPECT_EQ(Compare(kBiases, merged).verdict, Verdict::kEquivalent);
  EXPECT_EQ(Compare(kBiases, Replaced(merged, "%4 = Add(%0, %1)", "%4 = Relu(%0)")).verdict, Verdict::kDifferent);
  const CompareReport symbolic = Compare(kBiases, merged, CompareOptions());
  EXPECT_EQ(symbolic.verdict, Verdict::kUnproven) << "stored values are equal, so that no witness exists";
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

TEST(Compare, UndefinedWhereTheOtherIsNotIsUnproven) {
  const char kPlain[] = "  %0 = Input() {name = \"x\", shape = [4]}\n  %1 = Relu(%0)\n  return \"y\" = %1";
  const char kQuotient[] = R"(
  %0 = Input() {name = "x", shape = [4]}
  %1 = Relu(%0)
  %2 = Mul(%1, %1)
  %3 = Div(%2, %1)
  return "y" = %3)";
  const CompareReport report = Compare(kPlain, kQuotient);
  EXPECT_EQ(report.verdict, Verdict::kUnproven);
  EXPECT_THAT(report.reason, HasSubstr("is not defined everywhere"));
}

TEST(Compare, DivisionByZeroForEveryInputIsUnproven) {
  // All taps of the window lie in the padding of rows: the mean is zero whatever x is.
  const std::string mean = R"(
  %0 = Input() {name = "x", shape = [1, 2, 1, 4]}
  %1 = AveragePool(%0) {kernel_shape = [2, 1], strides = [1, 1], dilations = [2, 1], pads = [1, 0, 1, 0], count_include_pad = 1}
  %2 = Constant() {symbol = "w", value = f32[]{1.8}})";
  const CompareReport report =
      Compare(mean + "\n%3 = Div(%1, %2)\nreturn \"y\" = %3", mean + "\n%3 = Div(%2, %1)\nreturn \"y\" = %3");
  EXPECT_EQ(report.verdict, Verdict::kUnproven);
  EXPECT_THAT(report.reason, HasSubstr("zero"));
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
  options.judge.deadline = Deadline::After(-1);
  const CompareReport report = Compare(kNet, Replaced(kNet, "0.1,", "0.2,"), options);
  EXPECT_EQ(report.verdict, Verdict::kUnproven);
  EXPECT_EQ(report.reason, "out of time");
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
    for (const Node& node : pair->first.nodes()) symbols += IsConstant(node) && !SymbolName(node).empty() ? 1 : 0;
    return symbols > 0;
  };
  EXPECT_TRUE(shared("symbol = \"p\", value = f32[2]{0, 0}", "value = f32[2]{0, 0}"));
  EXPECT_FALSE(shared("symbol = \"p\", value = f32[2]{0, 0}", "symbol = \"p\", value = f32[2]{0, 1}"));
  EXPECT_FALSE(shared("symbol = \"p\", value = f32[2]{0, 0}", "symbol = \"p\", value = f16[2]{0, 0}"));
  EXPECT_FALSE(shared("symbol = \"p\", value = f32[2]{0, 0}", "symbol = \"p\", value = f32[1,2]{0, 0}"));
  EXPECT_FALSE(shared("symbol = \"p\", value = f32[1]{0}", "symbol = \"p\", value = f32[1]{0}"));
}

}  // namespace
}  // namespace mendel
