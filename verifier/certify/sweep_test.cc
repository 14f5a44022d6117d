#include "verifier/certify/sweep.h"

#include <gtest/gtest.h>

#include "graph/text.h"
#include "verifier/compare.h"

namespace mendel {
namespace {

Graph Parse(const std::string& body) {
  auto graph = ParseGraph("graph \"g\" {\n" + body + "\n}");
  EXPECT_TRUE(graph.ok()) << graph.status() << "\n" << body;
  return graph.ok() ? *graph : Graph();
}

absl::Status Swept(const std::string& a, const std::string& b,
                   std::map<std::string, int>* used = nullptr) {
  return CertifySwept(Parse(a), Parse(b), {}, used).status();
}

/// A tanh of a product, then a spelled sigmoid of a sum: axioms must not look through the product's
/// sum.
const char kWhole[] = R"(
  %0 = Input() {name = "x", shape = [3, 4]}
  %1 = Constant() {symbol = "w", value = f32[4,4]{1, 2, 0.5, -1, 3, -2, 1, 0.25, 2, 1, -1, 1, 0.5, 1, 1, -3}}
  %2 = MatMul(%0, %1)
  %3 = Tanh(%2)
  %4 = Add(%3, %0)
  %5 = Sigmoid(%4)
  return "y" = %5)";

const char kSplit[] = R"(
  %0 = Input() {name = "x", shape = [3, 4]}
  %1 = Constant() {symbol = "w", value = f32[4,4]{1, 2, 0.5, -1, 3, -2, 1, 0.25, 2, 1, -1, 1, 0.5, 1, 1, -3}}
  %2 = Slice(%0) {starts = [0, 0], ends = [3, 2], steps = [1, 1]}
  %3 = Slice(%0) {starts = [0, 2], ends = [3, 4], steps = [1, 1]}
  %4 = Slice(%1) {starts = [0, 0], ends = [2, 4], steps = [1, 1]}
  %5 = Slice(%1) {starts = [2, 0], ends = [4, 4], steps = [1, 1]}
  %6 = MatMul(%2, %4)
  %7 = MatMul(%3, %5)
  %8 = Add(%6, %7)
  %9 = Tanh(%8)
  %10 = Add(%0, %9)
  %11 = Neg(%10)
  %12 = Exp(%11)
  %13 = Constant() {value = f32[]{1}}
  %14 = Add(%12, %13)
  %15 = Div(%13, %14)
  return "y" = %15)";

std::string Replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

TEST(Sweep, ProvesByAxiomsHereAndByAlgebraThere) {
  std::map<std::string, int> used;
  EXPECT_TRUE(Swept(kWhole, kSplit, &used).ok()) << Swept(kWhole, kSplit);
  EXPECT_FALSE(used.empty());
  EXPECT_FALSE(Certify(Parse(kWhole), Parse(kSplit), {}).ok());
  EXPECT_EQ(ComparePrograms(Parse(kWhole), Parse(kSplit), {})->verdict, Verdict::kEquivalent);
}

TEST(Sweep, RefusesWhatDiffers) {
  EXPECT_TRUE(absl::IsFailedPrecondition(Swept(kWhole, Replaced(kSplit, "Neg(%10)", "Neg(%9)"))));
  EXPECT_TRUE(
      absl::IsFailedPrecondition(Swept(kWhole, Replaced(kSplit, "starts = [0, 2], ends = [3, 4]",
                                                        "starts = [0, 1], ends = [3, 3]"))));
}

/// Equal on the input drawn, not in general: relu(x + 1000) against x + 1000 is no proof, and
/// neither is a cut there.
TEST(Sweep, DropsCutsThatHoldOnTheDrawnInputOnly) {
  const std::string plain = R"(
  %0 = Input() {name = "x", shape = [4]}
  %1 = Constant() {value = f32[]{1000}}
  %2 = Add(%0, %1)
  %3 = Exp(%2)
  return "y" = %3)";
  const std::string limited = R"(
  %0 = Input() {name = "x", shape = [4]}
  %1 = Constant() {value = f32[]{1000}}
  %2 = Add(%0, %1)
  %3 = Relu(%2)
  %4 = Exp(%3)
  return "y" = %4)";
  EXPECT_TRUE(absl::IsFailedPrecondition(
      Swept(Replaced(plain, "Exp", "Sigmoid"), Replaced(limited, "Exp", "Sigmoid"))));
  EXPECT_TRUE(
      absl::IsFailedPrecondition(Swept(Replaced(plain, "%3 = Exp(%2)", "%3 = Mul(%2, %2)"),
                                       Replaced(limited, "%4 = Exp(%3)", "%4 = Mul(%3, %3)"))));
}

/// min(t, 0) = t - relu(t) where t is finite: at x = 0, t = 1 / x^2 is infinite, and the sides are
/// 0 and NaN.
TEST(Sweep, AxiomsDecideNoDomainWhereInfinitiesAreAbsorbed) {
  const std::string extreme = R"(
  %0 = Input() {name = "x", shape = [4]}
  %1 = Mul(%0, %0)
  %2 = Reciprocal(%1)
  %3 = Constant() {value = f32[]{0}}
  %4 = Min(%2, %3)
  return "y" = %4)";
  const std::string difference = R"(
  %0 = Input() {name = "x", shape = [4]}
  %1 = Mul(%0, %0)
  %2 = Reciprocal(%1)
  %3 = Relu(%2)
  %4 = Sub(%2, %3)
  return "y" = %4)";
  EXPECT_FALSE(Swept(extreme, difference).ok());
  const auto finite = [](const std::string& text) {
    return Replaced(text, "Reciprocal(%1)", "Neg(%1)");
  };
  EXPECT_TRUE(Swept(finite(extreme), finite(difference)).ok());
  for (const bool cut_points : {true, false}) {
    CompareOptions options;
    options.cut_points = cut_points;
    EXPECT_NE(ComparePrograms(Parse(extreme), Parse(difference), options)->verdict,
              Verdict::kEquivalent);
  }
}

/// log(0) is infinite for every input, and no event of one: relu(l) is 0, relu(2 l - l) is NaN.
TEST(Sweep, AxiomsDecideNoDomainWhereAllIsInfinite) {
  const std::string plain = R"(
  %0 = Input() {name = "x", shape = [4]}
  %1 = Constant() {value = f32[]{0}}
  %2 = Mul(%0, %1)
  %3 = Log(%2)
  %4 = Relu(%3)
  return "y" = %4)";
  const std::string split = R"(
  %0 = Input() {name = "x", shape = [4]}
  %1 = Constant() {value = f32[]{0}}
  %2 = Mul(%0, %1)
  %3 = Log(%2)
  %4 = Constant() {value = f32[]{2}}
  %5 = Mul(%3, %4)
  %6 = Sub(%5, %3)
  %7 = Relu(%6)
  return "y" = %7)";
  for (const bool cut_points : {true, false}) {
    CompareOptions options;
    options.cut_points = cut_points;
    EXPECT_NE(ComparePrograms(Parse(plain), Parse(split), options)->verdict, Verdict::kEquivalent);
  }
}

TEST(Sweep, AxiomsNeedSignsOfLiterals) {
  const std::string inside = R"(
  %0 = Input() {name = "x", shape = [4]}
  %1 = Constant() {value = f32[]{2}}
  %2 = Mul(%0, %1)
  %3 = Relu(%2)
  return "y" = %3)";
  const std::string outside = R"(
  %0 = Input() {name = "x", shape = [4]}
  %1 = Constant() {value = f32[]{2}}
  %2 = Relu(%0)
  %3 = Mul(%2, %1)
  return "y" = %3)";
  EXPECT_TRUE(Swept(inside, outside).ok()) << Swept(inside, outside);
  EXPECT_FALSE(Swept(Replaced(inside, "{2}", "{-2}"), Replaced(outside, "{2}", "{-2}")).ok());
  const auto symbol = [](const std::string& text) {
    return Replaced(text, "value = f32[]{2}", "symbol = \"s\", value = f32[4]{2, 2, 2, 2}");
  };
  EXPECT_TRUE(absl::IsFailedPrecondition(Swept(symbol(inside), symbol(outside))));
}

/// A cut makes an output of what the original computes under a guard only: that excuses nothing in
/// the other program.
TEST(Sweep, CutsExcuseNoPartialFunction) {
  const std::string guarded = R"(
  %0 = Input() {name = "a", shape = [4]}
  %1 = Input() {name = "b", shape = [4]}
  %2 = Input() {name = "c", shape = [4], dtype = "bool"}
  %3 = Div(%0, %1)
  %4 = Where(%2, %3, %0)
  %5 = Relu(%0)
  return "g" = %4, "y" = %5)";
  const std::string undefined = R"(
  %0 = Input() {name = "a", shape = [4]}
  %1 = Input() {name = "b", shape = [4]}
  %2 = Input() {name = "c", shape = [4], dtype = "bool"}
  %3 = Div(%0, %1)
  %4 = Where(%2, %3, %0)
  %5 = Mul(%0, %1)
  %6 = Div(%5, %1)
  %7 = Relu(%6)
  return "g" = %4, "y" = %7)";
  EXPECT_TRUE(absl::IsUnimplemented(Swept(guarded, undefined))) << Swept(guarded, undefined);
  EXPECT_NE(ComparePrograms(Parse(guarded), Parse(undefined), {})->verdict, Verdict::kEquivalent);
}

/// In exact mode up to four attempts could accept a wrong program; the bound adds them up.
TEST(Sweep, TheBoundCoversEveryAttempt) {
  CompareOptions options;
  options.verifier.weights = WeightMode::kExact;
  const auto report = ComparePrograms(Parse(kWhole), Parse(kSplit), options);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->verdict, Verdict::kEquivalent);
  EXPECT_LE(report->bound_log2, options.verifier.target_log2);
}

}  // namespace
}  // namespace mendel
