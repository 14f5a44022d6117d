#include <gtest/gtest.h>

#include "base/status.h"
#include "graph/random_graph.h"
#include "graph/text.h"
#include "verifier/regions/box_merge.h"
#include "verifier/regions/exhaustive_check.h"
#include "verifier/verifier.h"

namespace mendel {
namespace {

Graph Parse(const std::string& text) {
  auto graph = ParseGraph(text);
  EXPECT_TRUE(graph.ok()) << graph.status();
  return *std::move(graph);
}

VerifierReport MustLocalize(const Graph& f, const Graph& g, const VerifierOptions& options = {}) {
  auto report = Localize(f, g, options);
  EXPECT_TRUE(report.ok()) << report.status();
  return report.ok() ? *std::move(report) : VerifierReport();
}

constexpr int kLength = 10;

/// x: a vector with room on both sides; views of it as "name = start:step" are declared before
/// `body`.
Graph Vectors(const std::string& body) {
  return Parse(Cat(R"(graph "g" {
    %0 = Input() {name = "x", shape = [40]}
    %1 = Slice(%0) {starts = [0], ends = [10], steps = [1]}
    %2 = Slice(%0) {starts = [11], ends = [1], steps = [-1]}
    %3 = Slice(%0) {starts = [0], ends = [1], steps = [1]}
    %4 = Slice(%0) {starts = [1], ends = [2], steps = [1]}
    %5 = Slice(%0) {starts = [1], ends = [11], steps = [1]}
    %6 = Slice(%0) {starts = [12], ends = [2], steps = [-1]}
    %7 = Constant() {value = f32[10]{0, 0, 0, 0, 0, 0, 0, 0, 0, 0}}
)",
                   body, "}"));
}

TEST(Localize, ThreeClassesNeedThreePositions) {
  // x[t] + x[11-t] against x[0] + x[11] agrees where {t, 11-t} = {0, 11} only; the star of two
  // positions is no proof.
  const Graph f = Vectors("%8 = Add(%1, %2) return \"y\" = %8");
  const Graph g = Vectors(
      "%8 = Slice(%0) {starts = [11], ends = [12], steps = [1]} %9 = Add(%3, %8) %10 = Add(%9, %7) "
      "return \"y\" = %10");
  const VerifierReport report = MustLocalize(f, g);
  EXPECT_EQ(report.verdict, Verdict::kPartial);
  EXPECT_EQ(report.outputs[0].wrong, (std::vector<Box>{{{1}, {kLength}}}));
  const Graph near = Parse(R"(graph "g" {
    %0 = Input() {name = "x", shape = [40]}
    %1 = Slice(%0) {starts = [20], ends = [30], steps = [1]}
    %2 = Slice(%0) {starts = [21], ends = [11], steps = [-1]}
    %3 = Add(%1, %2)
    return "y" = %3
  })");
  const Graph still = Parse(R"(graph "g" {
    %0 = Input() {name = "x", shape = [40]}
    %1 = Constant() {value = f32[10]{0, 0, 0, 0, 0, 0, 0, 0, 0, 0}}
    %2 = Slice(%0) {starts = [20], ends = [21], steps = [1]}
    %3 = Slice(%0) {starts = [21], ends = [22], steps = [1]}
    %4 = Add(%2, %3)
    %5 = Add(%4, %1)
    return "y" = %5
  })");
  const VerifierReport star = MustLocalize(
      near, still);  // x[t] + x[1-t] and x[0] + x[1]: equal at 0 and 1, wrong from 2 on
  EXPECT_EQ(star.outputs[0].wrong, (std::vector<Box>{{{2}, {kLength}}}));
}

TEST(Localize, FunctionsOfOneSourceThatMoveApartInAProduct) {
  // relu(x[1+t]) * relu(x[12-t]) against the same with the factors' arguments swapped once:
  // condition (b).
  const Graph f = Vectors("%8 = Relu(%5) %9 = Relu(%6) %10 = Mul(%8, %9) return \"y\" = %10");
  const Graph g = Vectors(
      R"(%8 = Slice(%0) {starts = [12], ends = [13], steps = [1]} %9 = Relu(%4) %10 = Relu(%8) %11 = Mul(%9, %10)
    %12 = Add(%11, %7) return "y" = %12)");
  const VerifierReport report = MustLocalize(f, g);
  EXPECT_EQ(report.outputs[0].wrong, (std::vector<Box>{{{1}, {kLength}}}));
  EXPECT_FALSE(report.fallbacks.empty());
}

TEST(Localize, ArgumentsOfOneFunctionThatMoveApart) {
  const Graph f = Vectors("%8 = Max(%5, %6) return \"y\" = %8");
  const Graph g = Vectors("%8 = Max(%6, %5) return \"y\" = %8");
  EXPECT_EQ(MustLocalize(f, g).verdict, Verdict::kEquivalent);
  const Graph h = Vectors(
      "%8 = Slice(%0) {starts = [12], ends = [13], steps = [1]} %9 = Max(%4, %8) %10 = Add(%9, %7) "
      "return \"y\" = %10");
  EXPECT_EQ(MustLocalize(f, h).outputs[0].wrong, (std::vector<Box>{{{1}, {kLength}}}));
}

TEST(Localize, OneColumnOfALiteralChanged) {
  const Graph f = Vectors(
      "%8 = Constant() {value = f32[10]{2, 2, 2, 2, 2, 2, 2, 2, 2, 2}} %9 = Mul(%1, %8) return "
      "\"y\" = %9");
  const Graph g = Vectors(
      "%8 = Constant() {value = f32[10]{2, 2, 2, 2, 2, 3, 2, 2, 2, 2}} %9 = Mul(%1, %8) return "
      "\"y\" = %9");
  const VerifierReport report = MustLocalize(f, g);
  EXPECT_EQ(report.outputs[0].wrong, (std::vector<Box>{{{5}, {6}}}));
  EXPECT_NE(report.fallbacks.at(0).find("literal"), std::string::npos) << report.fallbacks[0];
}

TEST(Localize, AveragesThatExcludePaddingDifferAtBordersOnly) {
  const std::string head =
      R"(graph "g" { %0 = Input() {name = "x", shape = [1, 1, 12]} %1 = AveragePool(%0)
    {kernel_shape = [3], strides = [1], dilations = [1], pads = [1, 1], count_include_pad = )";
  const VerifierReport report =
      MustLocalize(Parse(head + "0} return \"y\" = %1 }"), Parse(head + "1} return \"y\" = %1 }"));
  EXPECT_EQ(report.outputs[0].wrong,
            (std::vector<Box>{{{0, 0, 0}, {1, 1, 1}}, {{0, 0, 11}, {1, 1, 12}}}));
}

TEST(Localize, SelfProductsAreDecidedByRegions) {
  const Graph f = Vectors("%8 = Relu(%1) %9 = Mul(%1, %8) return \"y\" = %9");
  const Graph g = Vectors("%8 = Relu(%1) %9 = Mul(%8, %1) return \"y\" = %9");
  const VerifierReport report = MustLocalize(f, g);
  EXPECT_EQ(report.verdict, Verdict::kEquivalent);
  EXPECT_TRUE(report.fallbacks.empty());
  EXPECT_EQ(report.probes, 1);
}

Graph ConvGraph(int64_t images, int64_t channels, int64_t extent, bool stacked) {
  const std::string shape = Cat("[", images, ", ", channels, ", ", extent, ", ", extent, "]");
  GraphBuilder builder;
  const ValueId x = builder.Input("x", {DType::kF32, {images, channels, extent, extent}});
  const ValueId w =
      builder.Constant(Tensor::Filled({DType::kF32, {channels, channels, 3, 3}}, 1), "w");
  const ValueId b = builder.Constant(Tensor::Filled({DType::kF32, {channels}}, 1), "b");
  const Attributes conv{
      {"strides", Ints{1, 1}}, {"dilations", Ints{1, 1}}, {"pads", Ints{1, 1, 1, 1}}};
  const Attributes swap{{"perm", Ints{1, 0, 2, 3}}};
  ValueId value = x;
  if (stacked) {
    value = *builder.Add("Transpose", {value}, swap);
    value =
        *builder.Add("Reshape", {value}, {{"shape", Ints{1, channels, images * extent, extent}}});
  }
  value = *builder.Add("Relu", {*builder.Add("Conv", {value, w, b}, conv)});
  if (stacked) {
    value = *builder.Add("Reshape", {value}, {{"shape", Ints{channels, images, extent, extent}}});
    value = *builder.Add("Transpose", {value}, swap);
  }
  builder.Output("y", value);
  return *builder.Build();
}

TEST(Localize, StackedImagesAreWrongInOneRowEachSideOfEverySeam) {
  const VerifierReport report =
      MustLocalize(ConvGraph(4, 32, 14, false), ConvGraph(4, 32, 14, true));
  EXPECT_EQ(report.verdict, Verdict::kPartial) << report.reason;
  EXPECT_TRUE(report.fallbacks.empty()) << report.fallbacks[0];
  const std::vector<Box> expected = {{{0, 0, 13, 0}, {3, 32, 14, 14}},
                                     {{1, 0, 0, 0}, {4, 32, 1, 14}}};
  EXPECT_EQ(report.outputs[0].wrong, expected);
  EXPECT_LE(report.probes, 4 * 9);
  EXPECT_LE(report.bound_log2, -60);
}

TEST(Localize, MismatchedTypesAreTheCallersMistake) {
  EXPECT_EQ(Localize(ConvGraph(1, 1, 4, false), ConvGraph(2, 1, 4, false), {}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(Screen, RejectsDifferencesAtBordersOftenAndNeverTheSame) {
  const Graph f = ConvGraph(2, 4, 6, false);
  const Graph stacked = ConvGraph(2, 4, 6, true);  // wrong in one row of six
  int rejected = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    VerifierOptions options;
    options.seed = seed;
    const auto wrong = ScreenedEqual(f, stacked, options);
    const auto same = ScreenedEqual(ConvGraph(1, 4, 6, false), ConvGraph(1, 4, 6, true), options);
    ASSERT_TRUE(wrong.ok() && same.ok());
    rejected += *wrong ? 0 : 1;
    EXPECT_TRUE(*same) << "seed " << seed;
  }
  EXPECT_GE(rejected, 5);
  EXPECT_FALSE(*ScreenedEqual(f, ConvGraph(1, 4, 6, false), {}));  // other types
}

TEST(BoxMerge, CoversTheSamePositionsWithFewBoxes) {
  const std::vector<Box> cells = {
      {{0, 0}, {1, 2}}, {{0, 2}, {1, 3}}, {{1, 0}, {2, 3}}, {{4, 0}, {5, 1}}};
  EXPECT_EQ(MergeTouching(cells), (std::vector<Box>{{{0, 0}, {2, 3}}, {{4, 0}, {5, 1}}}));
  EXPECT_TRUE(MergeTouching({}).empty());
}

}  // namespace
}  // namespace mendel
