#include "verifier/regions/probe.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/status.h"
#include "graph/random_graph.h"
#include "graph/restrict.h"
#include "verifier/regions/exhaustive_check.h"
#include "verifier/regions/probe_evaluation.h"

namespace mendel {
namespace {

TEST(ProbeSchedule, EvaluatesAsTheWholeProgramDoes) {
  for (uint64_t seed = 1; seed <= 150; ++seed) {
    Rng rng(seed);
    const Graph graph = RandomGraph(rng, static_cast<int>(rng.Between(1, 7)));
    const WeightMode weights = rng.Flip(0.3) ? WeightMode::kExact : WeightMode::kSymbolic;
    const Box whole = Box::Whole(graph.type(graph.outputs()[0].value).shape);
    Box box = whole;
    for (size_t d = 0; d < whole.end.size(); ++d) {
      box.begin[d] = rng.Between(0, whole.end[d] - 1);
      box.end[d] = rng.Between(box.begin[d] + 1, whole.end[d]);
    }
    const auto part = RestrictToBox(graph, 0, box);
    ASSERT_TRUE(part.ok()) << part.status();
    const Draw draw = SeededDraw(rng);
    const auto expected = EvaluateOutputs(*part, draw, weights, InputNaming::kByPosition);
    const auto actual = ProbeSchedule(*part).Evaluate(draw, weights, Deadline::Never());
    ASSERT_EQ(actual.ok(), expected.ok()) << "seed " << seed;
    if (!expected.ok()) continue;
    EXPECT_EQ(*actual, *expected) << "seed " << seed << "\n" << PrintGraph(*part);
  }
}

TEST(ProbeSchedule, StopsWhenTimeIsUp) {
  Rng rng(1);
  const Graph graph = RandomGraph(rng, 5);
  const auto values =
      ProbeSchedule(graph).Evaluate(SeededDraw(rng), WeightMode::kSymbolic, Deadline::After(-1));
  EXPECT_EQ(values.status().code(), absl::StatusCode::kDeadlineExceeded) << values.status();
}

TEST(ProbeSchedule, DrawsNoMoreOfAWeightThanIsRead) {
  GraphBuilder builder;
  const ValueId x = builder.Input("x", {DType::kF32, {1, 64}});
  const ValueId w = builder.Constant(Tensor::Filled({DType::kF32, {64, 4096}}, 1), "w");
  builder.Output("y", *builder.Add("MatMul", {x, w}));
  const auto part = RestrictToBox(*builder.Build(), 0, {{0, 100}, {1, 102}});
  ASSERT_TRUE(part.ok()) << part.status();
  EXPECT_LE(ProbeSchedule(*part).PeakBytes(), int64_t{8} * (64 + 64 * 2 + 2));
}

TEST(RunProbes, InPartsFindsWhatItFindsAtOnce) {
  int64_t wrong = 0;
  for (uint64_t seed = 1; seed <= 150; ++seed) {
    Rng rng(seed);
    const Graph f = RandomGraph(rng, static_cast<int>(rng.Between(1, 7)));
    const Graph g = RandomMutant(rng, f);
    const auto joint = JoinPrograms(f, g, WeightMode::kSymbolic);
    ASSERT_TRUE(joint.ok()) << joint.status();
    std::vector<Probe> probes;
    for (size_t k = 0; k < f.outputs().size(); ++k) {
      probes.push_back({static_cast<int>(k), Box::Whole(f.type(f.outputs()[k].value).shape)});
    }
    for (const double target : {-40.0, 0.0}) {
      const auto result = RunProbes(*joint, probes, {}, target, rng, 500);
      if (absl::IsAborted(result.status())) continue;
      ASSERT_TRUE(result.ok()) << result.status();
      const auto expected = Exhaustive(f, g, WeightMode::kSymbolic, seed);
      ASSERT_EQ(result->differs, expected) << "seed " << seed;
      for (const auto& differs : expected)
        wrong += std::count(differs.begin(), differs.end(), true);
      EXPECT_TRUE(target < 0 || result->bound_log2 == 0);
    }
  }
  EXPECT_GT(wrong, 1000);
}

}  // namespace
}  // namespace mendel
