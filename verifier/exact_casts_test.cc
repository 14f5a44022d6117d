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

}  // namespace
}  // namespace mendel
