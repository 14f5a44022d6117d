#include "corrector/corrector.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "graph/evaluate.h"
#include "graph/random_graph.h"
#include "graph/text.h"

namespace mendel {
namespace {

bool Close(double a, double b) {
  return a == b || (std::isnan(a) && std::isnan(b)) ||
         std::abs(a - b) <= 1e-9 * (1 + std::abs(a) + std::abs(b));
}

/// Same outputs, element for element, in double precision.
void ExpectSameValues(const Graph& f, const Graph& g, Rng& rng, uint64_t seed) {
  const std::vector<HostValue> inputs = RandomInputs(rng, f);
  const auto a = Evaluate(f, inputs);
  const auto b = Evaluate(g, inputs);
  ASSERT_TRUE(a.ok() && b.ok()) << "seed " << seed;
  for (size_t k = 0; k < a->size(); ++k) {
    for (int64_t i = 0; i < NumElements((*a)[k].type); ++i) {
      ASSERT_TRUE(Close((*a)[k].At(i), (*b)[k].At(i)))
          << "seed " << seed << " output " << k << " element " << i << "\n"
          << PrintGraph(f) << PrintGraph(g);
    }
  }
}

TEST(Recompute, MakesRandomPartialMutantsEqualEverywhere) {
  int corrected_count = 0;
  int refused = 0;
  for (uint64_t seed = 1; seed <= 1200; ++seed) {
    Rng rng(seed);
    const Graph original = RandomGraph(rng, static_cast<int>(rng.Between(1, 7)));
    const Graph mutant = RandomMutant(rng, original);
    const auto report = Localize(original, mutant, {});
    ASSERT_TRUE(report.ok()) << "seed " << seed << report.status();
    if (report->verdict != Verdict::kPartial) continue;
    const auto corrected = Recompute(original, mutant, *report, 0.9);
    if (!corrected.ok()) {
      ASSERT_EQ(corrected.status().code(), absl::StatusCode::kFailedPrecondition)
          << "seed " << seed << corrected.status();
      ++refused;
      continue;
    }
    ++corrected_count;
    const auto again = Localize(original, corrected->graph, {});
    ASSERT_TRUE(again.ok()) << "seed " << seed << again.status();
    ASSERT_EQ(again->verdict, Verdict::kEquivalent)
        << "seed " << seed << " " << again->reason << "\n"
        << PrintGraph(original) << PrintGraph(mutant) << PrintGraph(corrected->graph);
    ExpectSameValues(original, corrected->graph, rng, seed);
    if (HasFatalFailure()) return;
  }
  std::printf("[ seeds 1..1200: %d corrected, %d refused ]\n", corrected_count, refused);
  EXPECT_GT(corrected_count, 100);
}

/// One 3x3 convolution of `images` images; stacked: along the height, with wrong rows at the seams.
Graph ConvGraph(int64_t images, bool stacked) {
  GraphBuilder builder;
  const ValueId x = builder.Input("x", {DType::kF32, {images, 4, 28, 6}});
  const ValueId w = builder.Constant(Tensor::Filled({DType::kF32, {4, 4, 3, 3}}, 0.5), "w");
  const Attributes conv{
      {"strides", Ints{1, 1}}, {"dilations", Ints{1, 1}}, {"pads", Ints{1, 1, 1, 1}}};
  const Attributes swap{{"perm", Ints{1, 0, 2, 3}}};
  ValueId value = x;
  if (stacked) {
    value = *builder.Add("Transpose", {value}, swap);
    value = *builder.Add("Reshape", {value}, {{"shape", Ints{1, 4, images * 28, 6}}});
  }
  value = *builder.Add("Relu", {*builder.Add("Conv", {value, w}, conv)});
  if (stacked) {
    value = *builder.Add("Reshape", {value}, {{"shape", Ints{4, images, 28, 6}}});
    value = *builder.Add("Transpose", {value}, swap);
  }
  builder.Output("y", value);
  return *builder.Build();
}

TEST(Recompute, CostsTheRowsBesideTheSeam) {
  const Graph original = ConvGraph(2, false);
  const Graph mutant = ConvGraph(2, true);
  const auto report = Localize(original, mutant, {});
  ASSERT_TRUE(report.ok()) << report.status();
  const auto corrected = Recompute(original, mutant, *report, 0.5);
  ASSERT_TRUE(corrected.ok()) << corrected.status();
  EXPECT_EQ(corrected->boxes[0],
            (std::vector<Box>{{{0, 0, 27, 0}, {1, 4, 28, 6}}, {{1, 0, 0, 0}, {2, 4, 1, 6}}}));
  EXPECT_NEAR(corrected->flop_share, 2.0 / 56, 1e-3);  // two rows of 56
  const auto again = Localize(original, corrected->graph, {});
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->verdict, Verdict::kEquivalent) << again->reason;
}

const Node& PatchIn(const Graph& graph) {
  const auto is_patch = [](const Node& node) { return node.op->name == "Patch"; };
  return *std::find_if(graph.nodes().begin(), graph.nodes().end(), is_patch);
}

void ExpectEquivalent(const Graph& original, const CorrectedMutant& corrected) {
  const auto report = Localize(original, corrected.graph, {});
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report->verdict, Verdict::kEquivalent) << report->reason << PrintGraph(corrected.graph);
}

TEST(AtEnd, WritesOverTheValueThatTheLastViewsMove) {
  const Graph original = ConvGraph(2, false);
  const Graph mutant = ConvGraph(2, true);
  const auto report = Localize(original, mutant, {});
  ASSERT_TRUE(report.ok()) << report.status();
  const auto corrected = AtEnd(original, mutant, *report, 0.5);
  ASSERT_TRUE(corrected.ok()) << corrected.status();
  EXPECT_EQ(CorrectionName(corrected->correction), "end");
  EXPECT_NEAR(corrected->flop_share, 2.0 / 56, 1e-3);
  // The seam lies between the rows 27 and 28 of the stacked images.
  EXPECT_EQ(PatchIn(corrected->graph).outputs[0].shape, (Shape{1, 4, 56, 6}));
  EXPECT_EQ(PatchIn(corrected->graph).attrs.BoxList("boxes"),
            (Boxes{{{0, 0, 27, 0}, {1, 4, 28, 6}}, {{0, 0, 28, 0}, {1, 4, 29, 6}}}));
  ExpectEquivalent(original, *corrected);
  EXPECT_EQ(AtEnd(mutant, original, *report, 0.5).status().code(),
            absl::StatusCode::kFailedPrecondition);  // ends without views
}

TEST(InElementwise, AddsTheDifferenceInsideTheOperatorsThatFollow) {
  const Graph original = ConvGraph(2, false);
  const Graph mutant = ConvGraph(2, true);
  const auto report = Localize(original, mutant, {});
  ASSERT_TRUE(report.ok()) << report.status();
  const auto corrected = InElementwise(original, mutant, *report, 0.5);
  ASSERT_TRUE(corrected.ok()) << corrected.status();
  EXPECT_NEAR(corrected->flop_share, 2.0 / 56 / 3, 1e-3);  // one row of three of the kernel
  const Node& patch = PatchIn(corrected->graph);
  for (ValueId operand : patch.inputs)
    EXPECT_EQ(corrected->graph.node(operand.node).op->name, "Relu");
  EXPECT_EQ(corrected->graph.outputs()[0].value.node,
            static_cast<int32_t>(&patch - corrected->graph.nodes().data()));
  ExpectEquivalent(original, *corrected);
}

TEST(Recompute, RefusesWhatIsMostlyWrongAndWhatDoesNotMatch) {
  const Graph original = ConvGraph(2, false);
  const Graph mutant = ConvGraph(2, true);
  const auto report = Localize(original, mutant, {});
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(Recompute(original, mutant, *report, 0.01).status().code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Recompute(ConvGraph(3, false), mutant, *report, 1).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace mendel
