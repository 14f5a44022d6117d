// The theorem's conditions (docs/verifier.md, "Regions") by their counterexamples,
// interleavings, and the cost of regions.

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <set>

#include "base/status.h"
#include "graph/text.h"
#include "verifier/regions/exhaustive_check.h"
#include "verifier/regions/explain_regions.h"

namespace mendel {
namespace {

Graph Parse(const std::string& text) {
  auto graph = ParseGraph(text);
  EXPECT_TRUE(graph.ok()) << graph.status();
  return *std::move(graph);
}

/// Localize, compared with every element.
VerifierReport Exact(const Graph& f, const Graph& g, WeightMode weights = WeightMode::kSymbolic) {
  Tally tally;
  CompareWithExhaustive(1, f, g, weights, tally);
  VerifierOptions options;
  options.weights = weights;
  auto report = Localize(f, g, options);
  EXPECT_TRUE(report.ok()) << report.status();
  return report.ok() ? *std::move(report) : VerifierReport();
}

/// x[1 + t] as %1 and x[12 - t] as %2 for t in [0, 10); x[1] and x[12] as %3 and %4; ten zeros as
/// %5.
Graph Vectors(const std::string& body) {
  return Parse(Cat(R"(graph "g" {
    %0 = Input() {name = "x", shape = [40]}
    %1 = Slice(%0) {starts = [1], ends = [11], steps = [1]}
    %2 = Slice(%0) {starts = [12], ends = [2], steps = [-1]}
    %3 = Slice(%0) {starts = [1], ends = [2], steps = [1]}
    %4 = Slice(%0) {starts = [12], ends = [13], steps = [1]}
    %5 = Constant() {value = f32[10]{0, 0, 0, 0, 0, 0, 0, 0, 0, 0}}
)",
                   body, "}"));
}

TEST(RegionConditions, QuotientsMoveWithTheirDenominators) {
  // x[1 + t] / x[12 - t] against x[1] / x[12]: equal at t = 0 alone.
  const VerifierReport report =
      Exact(Vectors("%6 = Div(%1, %2) return \"y\" = %6"),
            Vectors("%6 = Div(%3, %4) %7 = Add(%6, %5) return \"y\" = %7"));
  EXPECT_EQ(report.outputs[0].wrong, (std::vector<Box>{{{1}, {10}}}));
  ASSERT_FALSE(report.fallbacks.empty());
  EXPECT_NE(report.fallbacks[0].find("Div: its operands move differently"), std::string::npos)
      << report.fallbacks[0];
  // One displacement for numerator and denominator: decided by one position.
  const VerifierReport joint = Exact(
      Vectors("%6 = Relu(%1) %7 = Add(%6, %1) %8 = Div(%7, %1) return \"y\" = %8"),
      Vectors(
          "%6 = Relu(%1) %7 = Div(%6, %1) %8 = Div(%1, %1) %9 = Add(%8, %7) return \"y\" = %9"));
  EXPECT_EQ(joint.verdict, Verdict::kEquivalent);
  EXPECT_TRUE(joint.fallbacks.empty());
  EXPECT_EQ(joint.probes, 1);
}

TEST(RegionConditions, BreaksOfAViewMoveRowByRow) {
  // The last column of x[3, 5], seen as [5, 3]: positions 4, 9 and 14.
  const std::string head = "graph \"g\" { %0 = Input() {name = \"x\", shape = [3, 5]} ";
  const VerifierReport report =
      Exact(Parse(head + "%1 = Reshape(%0) {shape = [5, 3]} return \"y\" = %1 }"), Parse(head + R"(
    %1 = Slice(%0) {starts = [0, 0], ends = [3, 4], steps = [1, 1]}
    %2 = Pad(%1) {pads = [0, 0, 0, 1]}
    %3 = Reshape(%2) {shape = [5, 3]}
    return "y" = %3 })"));
  const std::vector<Box> wrong = {{{1, 1}, {2, 2}}, {{3, 0}, {4, 1}}, {{4, 2}, {5, 3}}};
  EXPECT_EQ(report.outputs[0].wrong, wrong);
}

TEST(RegionConditions, InterleavedPhasesAreResidueClasses) {
  const auto upsampled = [](int64_t extent, bool by_views, bool odd_wrong) {
    GraphBuilder builder;
    ValueId x = builder.Input("x", {DType::kF32, {1, 2, extent}});
    if (!by_views) {
      x = *builder.Add("Resize", {x},
                       {{"scales", std::vector<double>{1, 1, 2}},
                        {"output_sizes", Ints{1, 2, 2 * extent}},
                        {"mode", std::string("nearest")},
                        {"coordinate_transformation_mode", std::string("asymmetric")},
                        {"nearest_mode", std::string("floor")}});
    } else {
      x = *builder.Add("Reshape", {x}, {{"shape", Ints{1, 2, extent, 1}}});
      const ValueId other =
          odd_wrong ? *builder.Add("Mul", {x, builder.Constant(Tensor::Scalar(DType::kF32, 3))})
                    : x;
      x = *builder.Add("Concat", {x, other}, {{"axis", int64_t{3}}});
      x = *builder.Add("Reshape", {x}, {{"shape", Ints{1, 2, 2 * extent}}});
    }
    builder.Output("y", *builder.Add("Relu", {x}));
    return *builder.Build();
  };
  std::set<int64_t> probes;
  for (int64_t extent : {8, 100, 1000}) {
    const VerifierReport same =
        Exact(upsampled(extent, false, false), upsampled(extent, true, false));
    EXPECT_EQ(same.verdict, Verdict::kEquivalent);
    EXPECT_TRUE(same.fallbacks.empty()) << same.fallbacks[0];
    probes.insert(same.probes);
  }
  EXPECT_EQ(probes, (std::set<int64_t>{2}));  // one position a phase
  const VerifierReport half = Exact(upsampled(8, false, false), upsampled(8, true, true));
  ASSERT_EQ(half.outputs[0].wrong.size(), 8u);
  for (const Box& box : half.outputs[0].wrong) EXPECT_EQ(box.begin[2] % 2, 1);
}

TEST(RegionConditions, StoredWeightsOfBothProgramsAreSymbolsOfRegions) {
  // In exact mode: w is stored, varies along the channels, and is the same in both programs.
  const auto conv = [](bool swapped, double first) {
    GraphBuilder builder;
    const ValueId x = builder.Input("x", {DType::kF32, {1, 4, 30, 30}});
    std::vector<double> weights(static_cast<size_t>(8 * 4 * 9));
    for (size_t k = 0; k < weights.size(); ++k) weights[k] = static_cast<double>(k % 7) - 3;
    weights[0] = first;
    const ValueId w =
        builder.Constant(Tensor::FromDoubles({DType::kF32, {8, 4, 3, 3}}, weights), "w");
    const Attributes attrs{
        {"strides", Ints{1, 1}}, {"dilations", Ints{1, 1}}, {"pads", Ints{1, 1, 1, 1}}};
    const ValueId y = *builder.Add("Conv", {x, w}, attrs);
    const ValueId r = *builder.Add("Relu", {y});
    builder.Output("y", swapped ? *builder.Add("Add", {r, y}) : *builder.Add("Add", {y, r}));
    return *builder.Build();
  };
  const VerifierReport same = Exact(conv(false, 1), conv(true, 1), WeightMode::kExact);
  EXPECT_EQ(same.verdict, Verdict::kEquivalent);
  EXPECT_LE(same.probes, 9);
  // One weight of output channel 0 differs: it is read wherever its tap lies inside.
  const VerifierReport different = Exact(conv(false, 1), conv(true, 2), WeightMode::kExact);
  EXPECT_EQ(different.outputs[0].wrong, (std::vector<Box>{{{0, 0, 1, 1}, {1, 1, 30, 30}}}));
}

/// Two 3x3 convolutions over four images, or the same over all of them stacked into one.
Graph ConvolutionChain(int64_t extent, bool stacked) {
  constexpr int64_t kImages = 4;
  constexpr int64_t kChannels = 4;
  GraphBuilder builder;
  ValueId value = builder.Input("x", {DType::kF32, {kImages, kChannels, extent, extent}});
  const Attributes conv{
      {"strides", Ints{1, 1}}, {"dilations", Ints{1, 1}}, {"pads", Ints{1, 1, 1, 1}}};
  const Attributes swap{{"perm", Ints{1, 0, 2, 3}}};
  if (stacked) {
    value = *builder.Add("Transpose", {value}, swap);
    value =
        *builder.Add("Reshape", {value}, {{"shape", Ints{1, kChannels, kImages * extent, extent}}});
  }
  for (int layer = 0; layer < 2; ++layer) {
    const ValueId w = builder.Constant(
        Tensor::Filled({DType::kF32, {kChannels, kChannels, 3, 3}}, 1), Cat("w", layer));
    value = *builder.Add("Relu", {*builder.Add("Conv", {value, w}, conv)});
  }
  if (stacked) {
    value = *builder.Add("Reshape", {value}, {{"shape", Ints{kChannels, kImages, extent, extent}}});
    value = *builder.Add("Transpose", {value}, swap);
  }
  builder.Output("y", value);
  return *builder.Build();
}

TEST(RegionCost, ProbesOfAConvolutionChainDoNotGrowWithTheImage) {
  std::set<int64_t> probes;
  for (int64_t extent : {14, 28, 56, 112, 224, 448, 896}) {
    const Graph f = ConvolutionChain(extent, false);
    const Graph g = ConvolutionChain(extent, true);
    const auto start = std::chrono::steady_clock::now();
    const auto report = Localize(f, g, {});
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    ASSERT_TRUE(report.ok()) << report.status();
    EXPECT_EQ(report->verdict, Verdict::kPartial) << report->reason;
    EXPECT_TRUE(report->fallbacks.empty());
    // Two rows on each side of every seam.
    const std::vector<Box> wrong = {{{0, 0, extent - 2, 0}, {3, 4, extent, extent}},
                                    {{1, 0, 0, 0}, {4, 4, 2, extent}}};
    EXPECT_EQ(report->outputs[0].wrong, wrong);
    const auto explained = ExplainRegions(f, g, {});
    ASSERT_TRUE(explained.ok());
    EXPECT_EQ((*explained)[0].probes, static_cast<double>(report->probes));
    probes.insert(report->probes);
    std::printf("[ %lld x %lld: %lld probes, %lld elements, %.4f s ]\n",
                static_cast<long long>(extent), static_cast<long long>(extent),
                static_cast<long long>(report->probes),
                static_cast<long long>(NumElements(report->outputs[0].shape)), seconds.count());
  }
  EXPECT_EQ(probes.size(), 1u);
}

TEST(ExplainRegions, NamesWhatChangesTheStructure) {
  const auto outputs = ExplainRegions(ConvolutionChain(14, false), ConvolutionChain(14, true), {});
  ASSERT_TRUE(outputs.ok()) << outputs.status();
  const ExplainedOutput& output = (*outputs)[0];
  EXPECT_TRUE(output.by_regions);
  EXPECT_TRUE(output.reasons.empty());
  ASSERT_EQ(output.dims.size(), 4u);
  const auto caused = [&](size_t dim, const std::string& what) {
    return std::count_if(output.dims[dim].breaks.begin(), output.dims[dim].breaks.end(),
                         [&](const ExplainedBreak& one) { return one.what == what; });
  };
  EXPECT_GT(caused(2, "padding edge"), 0);
  EXPECT_GT(caused(0, "row of a view"), 0);
  EXPECT_EQ(caused(1, "padding edge"), 0);
  const std::string text = PrintRegions(*outputs);
  EXPECT_NE(text.find("break at 1: padding edge (Conv"), std::string::npos) << text;
  EXPECT_NE(text.find("x +1 along 3"), std::string::npos) << text;
  const auto same = ExplainRegions(ConvolutionChain(14, false), ConvolutionChain(14, false), {});
  ASSERT_TRUE(same.ok());
  EXPECT_TRUE((*same)[0].congruent);
}

}  // namespace
}  // namespace mendel
