#include "verifier/exact_casts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/status.h"
#include "graph/text.h"
#include "verifier/compare.h"

namespace mendel {
namespace {

using testing::ElementsAre;

Graph Parse(const std::string& body) {
  auto graph = ParseGraph("graph \"g\" {\n" + body + "\n}");
  EXPECT_TRUE(graph.ok()) << graph.status() << "\n" << body;
  return graph.ok() ? *graph : Graph();
}

/// Attribute `exact` of all casts in order.
std::vector<int64_t> Marks(const std::string& body, WeightMode weights = WeightMode::kExact) {
  const auto marked = WithExactCasts(Parse(body), weights);
  EXPECT_TRUE(marked.ok()) << marked.status();
  std::vector<int64_t> marks;
  if (!marked.ok()) return marks;
  for (const Node& node : marked->nodes()) {
    if (node.op->name == "Cast") marks.push_back(node.attrs.Int("exact"));
  }
  return marks;
}

Verdict VerdictOf(const std::string& a, const std::string& b) {
  CompareOptions options;
  options.verifier.weights = WeightMode::kExact;
  const auto report = ComparePrograms(Parse(a), Parse(b), options);
  EXPECT_TRUE(report.ok()) << report.status();
  return report.ok() ? report->verdict : Verdict::kUnproven;
}

TEST(ExactCasts, FollowWhatAValueIsComputedOf) {
  // There and back is exact; the other way round digits are lost.
  EXPECT_THAT(Marks(R"(%0 = Input() {name = "x", dtype = "f16", shape = [3]}
                       %1 = Cast(%0) {to = "f32"}
                       %2 = Exp(%1)
                       %3 = Cast(%2) {to = "f16"}
                       return "y" = %3)"),
              ElementsAre(1, 1));
  EXPECT_THAT(Marks(R"(%0 = Input() {name = "x", dtype = "f32", shape = [3]}
                       %1 = Cast(%0) {to = "f16"}
                       %2 = Exp(%1)
                       %3 = Cast(%2) {to = "f32"}
                       %4 = Cast(%3) {to = "f16"}
                       return "y" = %4)"),
              ElementsAre(0, 1, 1));
  // The two narrow dtypes hold numbers that the other one lacks.
  EXPECT_THAT(Marks(R"(%0 = Input() {name = "x", dtype = "f16", shape = [3]}
                       %1 = Cast(%0) {to = "bf16"}
                       return "y" = %1)"),
              ElementsAre(0));
  // One operand of more digits is enough.
  EXPECT_THAT(Marks(R"(%0 = Input() {name = "x", dtype = "f16", shape = [3]}
                       %1 = Input() {name = "z", dtype = "f32", shape = [3]}
                       %2 = Cast(%0) {to = "f32"}
                       %3 = Add(%2, %1)
                       %4 = Cast(%3) {to = "f16"}
                       return "y" = %4)"),
              ElementsAre(1, 0));
}

TEST(ExactCasts, StoredNumbersCountByTheirDigits) {
  const auto scaled = [](const std::string& number) {
    return Cat(R"(%0 = Input() {name = "x", dtype = "f16", shape = [3]}
                  %1 = Constant() {value = f32[]{)",
               number, R"(}}
                  %2 = Cast(%0) {to = "f32"}
                  %3 = Mul(%2, %1)
                  %4 = Cast(%3) {to = "f16"}
                  return "y" = %4)");
  };
  EXPECT_THAT(Marks(scaled("0.75")), ElementsAre(1, 1));
  EXPECT_THAT(Marks(scaled("0.1")), ElementsAre(1, 0));
}

TEST(ExactCasts, SymbolsMayBeAnyNumberOfTheirDType) {
  const std::string body = R"(%0 = Constant() {symbol = "w", value = f32[2]{1, 2}}
                              %1 = Cast(%0) {to = "f16"}
                              %2 = Cast(%1) {to = "f32"}
                              return "y" = %2)";
  EXPECT_THAT(Marks(body, WeightMode::kExact), ElementsAre(1, 1));
  EXPECT_THAT(Marks(body, WeightMode::kSymbolic), ElementsAre(0, 1));
}

TEST(ExactCasts, DecideVerdicts) {
  const std::string f16 = R"(%0 = Input() {name = "x", dtype = "f16", shape = [3]}
                             %1 = Exp(%0)
                             return "y" = %1)";
  const std::string by_f32 = R"(%0 = Input() {name = "x", dtype = "f16", shape = [3]}
                                %1 = Cast(%0) {to = "f32"}
                                %2 = Exp(%1)
                                %3 = Cast(%2) {to = "f16"}
                                return "y" = %3)";
  EXPECT_EQ(VerdictOf(f16, by_f32), Verdict::kEquivalent);
  const std::string f32 = R"(%0 = Input() {name = "x", dtype = "f32", shape = [3]}
                             %1 = Exp(%0)
                             return "y" = %1)";
  const std::string by_f16 = R"(%0 = Input() {name = "x", dtype = "f32", shape = [3]}
                                %1 = Cast(%0) {to = "f16"}
                                %2 = Exp(%1)
                                %3 = Cast(%2) {to = "f32"}
                                return "y" = %3)";
  EXPECT_NE(VerdictOf(f32, by_f16), Verdict::kEquivalent);
}

/// A literal is not rounded where a cast to fewer digits decides by it.
TEST(ExactCasts, LiteralsBeforeNarrowingCasts) {
  const auto program = [](const std::string& node, const std::string& rest) {
    return "%0 = Input() {name = \"x\", shape = [3]}\n" + node + rest;
  };
  const std::string times =
      "%1 = Constant() {value = f32[]{0.3333333432674408}}\n%2 = Mul(%0, %1)\n";
  const std::string by = "%1 = Constant() {value = f32[]{3}}\n%2 = Div(%0, %1)\n";
  const auto cast = [](const std::string& to) {
    return "%3 = Cast(%2) {to = \"" + to + "\"}\nreturn \"y\" = %3";
  };
  EXPECT_EQ(VerdictOf(program(times, "return \"y\" = %2"), program(by, "return \"y\" = %2")),
            Verdict::kEquivalent);
  EXPECT_EQ(VerdictOf(program(times, cast("f64")), program(by, cast("f64"))), Verdict::kEquivalent);
  for (const std::string narrow : {"f16", "bf16"})
    EXPECT_NE(VerdictOf(program(times, cast(narrow)), program(by, cast(narrow))),
              Verdict::kEquivalent);
}

/// f32's 0.1 is no f16 number, wherever a node holds it; a slope belongs to the function.
TEST(ExactCasts, CountNumbersThatNodesHold) {
  const auto marks = [](const std::string& node) {
    return Marks(
        "%0 = Input() {name = \"x\", dtype = \"f16\", shape = [3]}\n"
        "%1 = Cast(%0) {to = \"f32\"}\n%2 = " +
        node + "\n%3 = Cast(%2) {to = \"f16\"}\nreturn \"y\" = %3");
  };
  EXPECT_THAT(marks("Clip(%1) {min = 0.1, max = 0.25}"), ElementsAre(1, 0));
  EXPECT_THAT(marks("Clip(%1) {min = 0.25, max = 0.3}"), ElementsAre(1, 0));
  EXPECT_THAT(marks("Clip(%1) {min = 0, max = 6}"), ElementsAre(1, 1));
  EXPECT_THAT(marks("Clip(%1) {min = 0}"), ElementsAre(1, 1));
  EXPECT_THAT(marks("Pad(%1) {pads = [0, 1], value = 0.1}"), ElementsAre(1, 0));
  EXPECT_THAT(marks("Pad(%1) {pads = [0, 1], value = -0.5}"), ElementsAre(1, 1));
  EXPECT_THAT(marks("LeakyRelu(%1) {alpha = 0.1}"), ElementsAre(1, 1));
}

}  // namespace
}  // namespace mendel
