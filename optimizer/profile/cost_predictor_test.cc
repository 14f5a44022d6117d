#include "optimizer/profile/cost_predictor.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/random.h"
#include "graph/rewrite.h"
#include "optimizer/profile/operator_profiles.h"

namespace mendel {
namespace {

/// Convolutions on a machine of 10 Gflop/s and copies at 5 GB/s, measured with 5 % of noise.
std::vector<CostSample> MadeUpSamples(Rng& rng, int count) {
  std::vector<CostSample> samples;
  for (int k = 0; k < count; ++k) {
    const bool conv = rng.Flip();
    const int64_t channels = int64_t{8} << rng.Below(5), extent = int64_t{4} << rng.Below(5);
    GraphBuilder builder;
    const ValueId x = builder.Input("x", {DType::kF32, {1, channels, extent, extent}});
    const ValueId w =
        builder.Constant(Tensor::Filled({DType::kF32, {channels, channels, 3, 3}}, 1), "w");
    builder.Output("y", conv ? *builder.Add("Conv", {x, w},
                                            {{"strides", Ints{1, 1}},
                                             {"dilations", Ints{1, 1}},
                                             {"pads", Ints{1, 1, 1, 1}}})
                             : *builder.Add("Transpose", {x}, {{"perm", Ints{0, 2, 3, 1}}}));
    const Graph graph = *builder.Build();
    const int32_t node = graph.outputs()[0].value.node;
    WithView(graph, node, [&](const NodeView& view) {
      const OpDefinition& op = *graph.node(node).op;
      const Cost cost = CostOf(op, view);
      const double seconds =
          (conv ? cost.flops / 1e10 : cost.bytes / 5e9) * std::exp(0.05 * rng.Normal());
      samples.push_back({std::string(op.name), FeaturesOf(op, view, {false, true}), seconds});
    });
  }
  return samples;
}

TEST(CostPredictor, LearnsARoofline) {
  Rng rng(3);
  const PredictorError error = HeldOutError(MadeUpSamples(rng, 200));
  EXPECT_EQ(error.tested, 200u);
  EXPECT_EQ(error.trained, 160u);
  EXPECT_LT(error.median_factor, 1.1);
  EXPECT_LT(error.p90_factor, 1.3);
}

TEST(CostPredictor, WithoutSamplesGuesses) {
  Rng rng(4);
  const CostPredictor predictor = CostPredictor::Train({});
  for (const CostSample& sample : MadeUpSamples(rng, 20)) {
    const double seconds = predictor.Seconds(sample.op, sample.features);
    EXPECT_GT(seconds, 0);
    EXPECT_LT(seconds, 1);
  }
}

/// Neg, then Relu computed in Neg's step.
Graph TwoSteps(const Shape& shape) {
  GraphBuilder builder;
  const ValueId x = builder.Input("x", {DType::kF32, shape});
  builder.Output("y", *builder.Add("Relu", {*builder.Add("Neg", {x})}));
  return *builder.Build();
}

TEST(OperatorProfiles, MeasuredFirstFreeNextPredictedLast) {
  const auto cache = *ProfileCache::Open(":memory:");
  const Graph graph = TwoSteps({8});
  const std::vector<Step> steps = {{.name = "neg", .nodes = {1, 2}, .kernel = ""}};
  ASSERT_TRUE(
      cache->Put("operators", "k", PrintOperatorProfiles(graph, {0, 0.25, 0}, steps, "device"))
          .ok());
  const auto profiles = OperatorProfiles::Load(*cache, "device");
  ASSERT_TRUE(profiles.ok()) << profiles.status();
  const auto seconds = [&](const Graph& of, int32_t node, const std::string& producer) {
    return WithView(of, node, [&](const NodeView& view) {
      return profiles->Seconds(*of.node(node).op, view, {false}, {producer});
    });
  };
  EXPECT_EQ(seconds(graph, 1, "Input"), 0.25);
  EXPECT_EQ(seconds(graph, 2, "Neg"), 0);
  const Graph larger = TwoSteps({800});
  EXPECT_EQ(seconds(larger, 2, "Neg"), 0);
  EXPECT_GT(seconds(larger, 2, "Conv"), 0);
  EXPECT_GT(seconds(larger, 1, "Input"), 0);
  EXPECT_TRUE(OperatorProfiles::Load(*cache, "other")->samples().empty());
  EXPECT_EQ(OperatorProfiles::Load(*cache, "")->samples().size(), 1u);
}

}  // namespace
}  // namespace mendel
