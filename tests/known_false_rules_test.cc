// Rewrites that others have published or shipped and that are false, each refused by the verifier
// with its wrong elements named.

#include <gtest/gtest.h>

#include "base/status.h"
#include "graph/text.h"
#include "verifier/verifier.h"

namespace mendel {
namespace {

/// The graph of these lines; {Wn} stands for n numbers of a weight, which the verifier does not
/// look at.
Graph Parse(std::string body) {
  size_t at = 0;
  while ((at = body.find("{W", at)) != std::string::npos) {
    const size_t end = body.find('}', at);
    const int count = std::stoi(body.substr(at + 2, end - at - 2));
    std::string values;
    for (int i = 0; i < count; ++i) values += Cat(i > 0 ? ", " : "", i % 7 - 3);
    body.replace(at + 1, end - at - 1, values);
  }
  auto graph = ParseGraph("graph \"g\" {\n" + body + "\n}");
  EXPECT_TRUE(graph.ok()) << graph.status() << "\n" << body;
  return graph.ok() ? *std::move(graph) : Graph();
}

/// Boxes of output 0 that are wrong; Certify must refuse as well.
std::vector<Box> WrongBoxes(const std::string& original, const std::string& plan) {
  const Graph f = Parse(original), g = Parse(plan);
  EXPECT_EQ(Certify(f, g, {}).status().code(), absl::StatusCode::kFailedPrecondition)
      << Certify(f, g, {}).status();
  const auto report = Localize(f, g, {});
  EXPECT_TRUE(report.ok()) << report.status();
  if (!report.ok()) return {};
  EXPECT_TRUE(report->verdict == Verdict::kDifferent || report->verdict == Verdict::kPartial)
      << VerdictName(report->verdict);
  return report->outputs[0].wrong;
}

int64_t Volume(const std::vector<Box>& boxes) {
  int64_t volume = 0;
  for (const Box& box : boxes) volume += box.Volume();
  return volume;
}

TEST(KnownFalseRules, TwoConvolutionsAreNoConvolutionOfConcatenations) {
  const std::string head = R"(
  %0 = Input() {name = "x", shape = [1, 2, 5, 5]}
  %1 = Input() {name = "z", shape = [1, 2, 5, 5]}
  %2 = Constant() {symbol = "w1", value = f32[3,2,3,3]{W54}}
  %3 = Constant() {symbol = "w2", value = f32[3,2,3,3]{W54}}
)";
  const std::string apart = head + R"(
  %4 = Conv(%0, %2) {strides = [1, 1], dilations = [1, 1], pads = [1, 1, 1, 1]}
  %5 = Conv(%1, %3) {strides = [1, 1], dilations = [1, 1], pads = [1, 1, 1, 1]}
  %6 = Concat(%4, %5) {axis = 1}
  return "y" = %6)";
  const std::string merged = head + R"(
  %4 = Concat(%0, %1) {axis = 0}
  %5 = Concat(%2, %3) {axis = 0}
  %6 = Conv(%4, %5) {strides = [1, 1], dilations = [1, 1], pads = [1, 1, 1, 1]}
  %7 = Slice(%6) {starts = [0, 0, 0, 0], ends = [1, 6, 5, 5], steps = [1, 1, 1, 1]}
  return "y" = %7)";
  // The first three channels read x and w1 in both; the others read x with w2 instead of z.
  EXPECT_EQ(WrongBoxes(apart, merged), (std::vector<Box>{{{0, 3, 0, 0}, {1, 6, 5, 5}}}));
  const std::string summed = head + R"(
  %4 = Concat(%0, %1) {axis = 1}
  %5 = Concat(%2, %3) {axis = 1}
  %6 = Conv(%4, %5) {strides = [1, 1], dilations = [1, 1], pads = [1, 1, 1, 1]}
  %7 = Concat(%6, %6) {axis = 1}
  return "y" = %7)";
  EXPECT_EQ(WrongBoxes(apart, summed), (std::vector<Box>{{{0, 0, 0, 0}, {1, 6, 5, 5}}}));
}

TEST(KnownFalseRules, ParallelGroupedConvolutionsMergedByChannels) {
  const std::string head = R"(
  %0 = Input() {name = "x", shape = [1, 4, 4, 4]}
  %1 = Constant() {symbol = "w1", value = f32[4,2,1,1]{W8}}
  %2 = Constant() {symbol = "w2", value = f32[4,2,1,1]{W8}}
)";
  const std::string parallel = head + R"(
  %3 = Conv(%0, %1) {strides = [1, 1], dilations = [1, 1], pads = [0, 0, 0, 0], group = 2}
  %4 = Conv(%0, %2) {strides = [1, 1], dilations = [1, 1], pads = [0, 0, 0, 0], group = 2}
  %5 = Concat(%3, %4) {axis = 1}
  return "y" = %5)";
  const std::string merged = head + R"(
  %3 = Concat(%1, %2) {axis = 0}
  %4 = Conv(%0, %3) {strides = [1, 1], dilations = [1, 1], pads = [0, 0, 0, 0], group = 2}
  return "y" = %4)";
  // Channels 2 and 3 move from the second group to the first, 4 and 5 from the first to the second.
  EXPECT_EQ(WrongBoxes(parallel, merged), (std::vector<Box>{{{0, 2, 0, 0}, {1, 6, 4, 4}}}));
}

TEST(KnownFalseRules, AveragePoolCountingPaddingIsNotTheOther) {
  const std::string counting = R"(
  %0 = Input() {name = "x", shape = [1, 1, 6, 7]}
  %1 = AveragePool(%0) {kernel_shape = [3, 3], strides = [1, 1], dilations = [1, 1], pads = [1, 1, 1, 1], count_include_pad = 1}
  return "y" = %1)";
  std::string excluding = counting;
  excluding.replace(excluding.find("count_include_pad = 1"), 21, "count_include_pad = 0");
  const std::vector<Box> wrong = WrongBoxes(counting, excluding);
  EXPECT_EQ(Volume(wrong), 6 * 7 - 4 * 5);
  for (const Box& box : wrong)
    EXPECT_FALSE(Intersect(box, {{0, 0, 1, 1}, {1, 1, 5, 6}}).has_value()) << BoxString(box);
}

TEST(KnownFalseRules, BlocksSplitUnequally) {
  const std::string head = R"(
  %0 = Input() {name = "x", shape = [3, 4]}
  %1 = Input() {name = "z", shape = [3, 2]}
  %2 = Input() {name = "y", shape = [2, 5]}
  %3 = Input() {name = "w", shape = [4, 5]}
)";
  const std::string product = head + R"(
  %4 = Concat(%0, %1) {axis = 1}
  %5 = Concat(%2, %3) {axis = 0}
  %6 = MatMul(%4, %5)
  return "p" = %6)";
  const std::string exchanged = head + R"(
  %4 = Concat(%1, %0) {axis = 1}
  %5 = Concat(%3, %2) {axis = 0}
  %6 = MatMul(%4, %5)
  return "p" = %6)";
  EXPECT_EQ(WrongBoxes(product, exchanged), (std::vector<Box>{{{0, 0}, {3, 5}}}));
}

TEST(KnownFalseRules, AveragePoolIsNoIdentity) {
  const std::string pool = R"(
  %0 = Input() {name = "x", shape = [1, 2, 8]}
  %1 = AveragePool(%0) {kernel_shape = [3], strides = [1], dilations = [1], pads = [1, 1], count_include_pad = 1}
  return "y" = %1)";
  const std::string identity =
      "  %0 = Input() {name = \"x\", shape = [1, 2, 8]}\n  return \"y\" = %0";
  EXPECT_EQ(WrongBoxes(identity, pool), (std::vector<Box>{{{0, 0, 0}, {1, 2, 8}}}));
}

TEST(KnownFalseRules, TransposedSquareProducts) {
  const std::string head = R"(
  %0 = Input() {name = "a", shape = [4, 4]}
  %1 = Input() {name = "b", shape = [4, 4]}
)";
  const std::string product = head + "  %2 = MatMul(%0, %1)\n  return \"y\" = %2";
  const std::string exchanged = head + "  %2 = MatMul(%1, %0)\n  return \"y\" = %2";
  const std::string transposed =
      head + "  %2 = MatMul(%0, %1)\n  %3 = Transpose(%2) {perm = [1, 0]}\n  return \"y\" = %3";
  EXPECT_EQ(WrongBoxes(product, exchanged), (std::vector<Box>{{{0, 0}, {4, 4}}}));
  // The diagonal is right.
  EXPECT_EQ(Volume(WrongBoxes(product, transposed)), 12);
}

TEST(KnownFalseRules, TheStarOfThreeClasses) {
  // x[t] and x[1 - t] against x[0] and x[1]: equal at t = 0 and t = 1, wrong at t = 2.
  const std::string head = "  %0 = Input() {name = \"x\", shape = [10]}\n";
  const std::string moving = head + R"(
  %1 = Slice(%0) {starts = [4], ends = [9], steps = [1]}
  %2 = Slice(%0) {starts = [5], ends = [0], steps = [-1]}
  %3 = Add(%1, %2)
  return "y" = %3)";
  const std::string fixed = head + R"(
  %1 = Slice(%0) {starts = [4], ends = [5], steps = [1]}
  %2 = Slice(%0) {starts = [5], ends = [6], steps = [1]}
  %3 = Add(%1, %2)
  %4 = Expand(%3) {shape = [5]}
  return "y" = %4)";
  EXPECT_EQ(WrongBoxes(moving, fixed), (std::vector<Box>{{{2}, {5}}}));
}

absl::Status Certified(const std::string& original, const std::string& plan,
                       WeightMode weights = WeightMode::kSymbolic) {
  const Graph f = Parse(original), g = Parse(plan);
  const auto report = Localize(f, g, {.weights = weights});
  EXPECT_TRUE(!report.ok() || report->verdict != Verdict::kEquivalent) << "Localize accepts";
  return Certify(f, g, {.weights = weights}).status();
}

TEST(KnownFalseRules, RootOfASquareIsNotTheNumber) {
  const std::string plain =
      "  %0 = Input() {name = \"x\", shape = [4]}\n  %1 = Relu(%0)\n  return \"y\" = %0, \"r\" = "
      "%1";
  const std::string root = R"(
  %0 = Input() {name = "x", shape = [4]}
  %1 = Relu(%0)
  %2 = Mul(%0, %0)
  %3 = Sqrt(%2)
  return "y" = %3, "r" = %1)";
  EXPECT_FALSE(Certified(plain, root).ok());
  EXPECT_FALSE(Certified(root, plain).ok());
}

TEST(KnownFalseRules, ANumberTimesItsQuotient) {
  const std::string plain =
      "  %0 = Input() {name = \"x\", shape = [4]}\n  %1 = Relu(%0)\n  return \"y\" = %0, \"r\" = "
      "%1";
  const std::string quotient = R"(
  %0 = Input() {name = "x", shape = [4]}
  %1 = Relu(%0)
  %2 = Mul(%0, %1)
  %3 = Div(%2, %1)
  return "y" = %3, "r" = %1)";
  const std::string quotient_first = R"(
  %0 = Input() {name = "x", shape = [4]}
  %1 = Relu(%0)
  %2 = Div(%1, %1)
  %3 = Mul(%0, %2)
  return "y" = %3, "r" = %1)";
  // Formally equal, but 0 / 0 where relu is zero.
  for (const std::string& plan : {quotient, quotient_first}) {
    EXPECT_EQ(Certify(Parse(plain), Parse(plan), {}).status().code(),
              absl::StatusCode::kUnimplemented);
  }
}

TEST(KnownFalseRules, TenConjunctionsAreNotFalse) {
  std::string ands = "  %0 = Input() {name = \"c\", dtype = \"bool\", shape = [11]}\n";
  ands += "  %1 = Slice(%0) {starts = [0], ends = [1], steps = [1]}\n";
  int next = 2;
  std::string last = "%1";
  for (int k = 1; k <= 10; ++k) {
    ands +=
        Cat("  %", next, " = Slice(%0) {starts = [", k, "], ends = [", k + 1, "], steps = [1]}\n");
    ands += Cat("  %", next + 1, " = And(", last, ", %", next, ")\n");
    last = Cat("%", next + 1);
    next += 2;
  }
  ands += "  return \"y\" = " + last;
  // Samples of random Booleans are all false in 2047 of 2048 cases.
  const std::string never = R"(
  %0 = Input() {name = "c", dtype = "bool", shape = [11]}
  %1 = Constant() {value = bool[1]{0}}
  return "y" = %1)";
  EXPECT_EQ(Certified(ands, never).code(), absl::StatusCode::kFailedPrecondition);
}

TEST(KnownFalseRules, IdentifiersModuloAThousand) {
  const std::string head = R"(
  %0 = Input() {name = "ids", dtype = "i64", shape = [3]}
  %1 = Input() {name = "table", shape = [1200, 2]}
)";
  const std::string plain = head + "  %2 = Gather(%1, %0) {axis = 0}\n  return \"y\" = %2";
  const std::string wrapped = head + R"(
  %2 = Constant() {value = i64[]{1000}}
  %3 = Mod(%0, %2)
  %4 = Gather(%1, %3) {axis = 0}
  return "y" = %4)";
  // Equal for every identifier below 1000, which is what one would sample.
  EXPECT_FALSE(Certified(plain, wrapped).ok());
  EXPECT_TRUE(Certify(Parse(plain), Parse(plain), {}).ok());
}

}  // namespace
}  // namespace mendel
