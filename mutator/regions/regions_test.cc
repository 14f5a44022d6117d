// Region analysis of random programs agrees with evaluation.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/status.h"
#include "graph/emitter.h"
#include "graph/evaluate.h"
#include "graph/random_graph.h"
#include "graph/rewrite.h"
#include "graph/text.h"
#include "mutator/regions/candidates.h"
#include "mutator/regions/plan.h"
#include "mutator/regions/random_program.h"
#include "mutator/regions/split_parts.h"

namespace mendel {
namespace {

bool Close(double a, double b) {
  return a == b || std::abs(a - b) <= 1e-9 * (1 + std::abs(a)) || (std::isnan(a) && std::isnan(b));
}

void ExpectEqual(const Graph& a, const Graph& b, Rng& rng) {
  const std::vector<HostValue> inputs = RandomInputs(rng, a);
  const auto x = Evaluate(a, inputs), y = Evaluate(b, inputs);
  ASSERT_TRUE(x.ok() && y.ok()) << x.status() << y.status();
  for (size_t k = 0; k < x->size(); ++k) {
    ASSERT_EQ((*x)[k].type, (*y)[k].type);
    for (int64_t i = 0; i < NumElements((*x)[k].type); ++i) {
      ASSERT_TRUE(Close((*x)[k].At(i), (*y)[k].At(i)))
          << "output " << k << " element " << i << ": " << (*x)[k].At(i) << " and " << (*y)[k].At(i)
          << "\n"
          << PrintGraph(a) << PrintGraph(b);
    }
  }
}

TEST(Regions, PlannedProgramsAreEqual) {
  int64_t smaller = 0, split = 0;
  for (uint64_t seed = 1; seed <= RegionPrograms() && !testing::Test::HasFailure(); ++seed) {
    Rng rng(seed);
    const Graph graph = RandomRegionsProgram(rng);
    SCOPED_TRACE(Cat("seed ", seed));
    for (const bool repeats : {false, true}) {
      const auto built = BuildPlan(graph, PlanRegions(graph, repeats));
      if (absl::IsFailedPrecondition(built.status())) continue;  // only padding is read
      ASSERT_TRUE(built.ok()) << built.status() << "\n" << PrintGraph(graph);
      ExpectEqual(graph, *built, rng);
      smaller += RunTimeFlops(*built) < RunTimeFlops(graph) ? 1 : 0;
    }
    const auto parts = SplitRepeatedParts(graph, false);
    ASSERT_TRUE(parts.ok()) << parts.status();
    ExpectEqual(graph, *parts, rng);
    split += parts->nodes().size() != graph.nodes().size() ? 1 : 0;
  }
  std::printf("[ %lld programs got smaller, %lld were split ]\n", static_cast<long long>(smaller),
              static_cast<long long>(split));
  EXPECT_GT(smaller, 100);
}

TEST(Regions, WhatIsNotNeededDoesNotMatter) {
  int64_t changed = 0;
  for (uint64_t seed = 1; seed <= RegionPrograms() && !testing::Test::HasFailure(); ++seed) {
    Rng rng(seed);
    const Graph graph = RandomRegionsProgram(rng);
    const RegionPlan plan = PlanRegions(graph, false);
    const std::vector<HostValue> inputs = RandomInputs(rng, graph);
    std::vector<HostValue> others = inputs;
    for (size_t k = 0; k < inputs.size(); ++k) {
      const ValuePlan& value = plan.values[static_cast<size_t>(graph.inputs()[k])][0];
      const Shape& shape = inputs[k].type.shape;
      std::vector<int64_t> index(shape.size(), 0);
      for (int64_t i = 0; i < NumElements(shape); ++i, NextIndex(shape, index)) {
        bool needed = value.is_needed;
        for (size_t d = 0; needed && d < shape.size(); ++d) {
          const std::vector<int64_t> list = value.needed[d].ToList();
          needed = std::find(list.begin(), list.end(), index[d]) != list.end();
        }
        if (needed) continue;
        others[k].scalars[static_cast<size_t>(i)] = rng.Normal();
        ++changed;
      }
    }
    const auto a = Evaluate(graph, inputs), b = Evaluate(graph, others);
    ASSERT_TRUE(a.ok() && b.ok());
    for (size_t k = 0; k < a->size(); ++k) {
      for (int64_t i = 0; i < NumElements((*a)[k].type); ++i) {
        ASSERT_TRUE(Close((*a)[k].At(i), (*b)[k].At(i)))
            << "seed " << seed << " output " << k << " element " << i << "\n"
            << PrintGraph(graph);
      }
    }
  }
  std::printf("[ %lld elements changed ]\n", static_cast<long long>(changed));
  EXPECT_GT(changed, 1000);
}

TEST(Regions, RepeatedElementsAreEqual) {
  int64_t equal = 0;
  for (uint64_t seed = 1; seed <= RegionPrograms() && !testing::Test::HasFailure(); ++seed) {
    Rng rng(seed);
    const Graph graph = RandomRegionsProgram(rng);
    const auto classes = RepeatedElements(graph);
    std::vector<std::vector<HostValue>> values;
    const std::vector<HostValue> inputs = RandomInputs(rng, graph);
    const auto outputs = EvaluateWith(
        graph, inputs,
        [&](const OpDefinition& op, const NodeView& node, std::span<const HostValue* const> in) {
          values.push_back(EvaluateNode(op, node, in));
          return values.back();
        });
    ASSERT_TRUE(outputs.ok());
    size_t next = 0;
    for (size_t i = 0; i < graph.nodes().size(); ++i) {
      const Node& node = graph.nodes()[i];
      if (IsInput(node) || IsConstant(node)) continue;
      const HostValue& value = values[next++][0];
      ASSERT_EQ(value.type, node.outputs[0]) << "nodes are evaluated in order";
      const Shape& shape = value.type.shape;
      std::vector<int64_t> index(shape.size(), 0);
      for (int64_t flat = 0; flat < NumElements(shape); ++flat, NextIndex(shape, index)) {
        for (size_t d = 0; d < shape.size(); ++d) {
          std::vector<int64_t> first = index;
          first[d] = FirstOf(classes[i][0][d], index[d]);
          if (first[d] == index[d]) continue;
          ++equal;
          ASSERT_TRUE(Close(value.At(flat), value.At(FlatIndex(shape, first))))
              << "seed " << seed << " node " << i << " element " << flat << " dimension " << d
              << "\n"
              << PrintGraph(graph);
        }
      }
    }
  }
  std::printf("[ %lld repetitions ]\n", static_cast<long long>(equal));
  EXPECT_GT(equal, 10000);
}

/// Ten layers shrink at once: a crop of 2 x 2 needs 22 x 22 of the input.
/// With this stride and dilation one tap yields as many positions as two equal ones.
TEST(Regions, EqualTapsOfAKernelStay) {
  const auto graph = ParseGraph(R"(graph "taps" {
  %0 = Input() {name = "x", shape = [1, 1, 1, 8]} : f32[1,1,1,8]
  %1 = Input() {name = "w", shape = [1, 1, 1, 1]} : f32[1,1,1,1]
  %2 = Tile(%1) {repeats = [1, 1, 1, 2]} : f32[1,1,1,2]
  %3 = Conv(%0, %2) {strides = [1, 3], dilations = [1, 2], pads = [0, 2, 0, 2]} : f32[1,1,1,4]
  return "y" = %3
})");
  ASSERT_TRUE(graph.ok()) << graph.status();
  const auto built = BuildPlan(*graph, PlanRegions(*graph, true));
  ASSERT_TRUE(built.ok()) << built.status();
  Rng rng(1);
  ExpectEqual(*graph, *built, rng);
}

TEST(Regions, ACropReachesTheInputOfAChain) {
  Emitter e("chain");
  ValueId x = e.Input("x", {DType::kF32, {1, 2, 64, 64}});
  const Tensor w = Tensor::Filled({DType::kF32, {2, 2, 3, 3}}, 0.1);
  for (int k = 0; k < 10; ++k) {
    x = e.Op("Conv", {x, e.Constant(w, "w")},
             {{"strides", Ints{1, 1}}, {"dilations", Ints{1, 1}}, {"pads", Ints{1, 1, 1, 1}}});
    x = e.Op("Relu", {x});
  }
  e.Output("y", e.Slice(e.Slice(x, 2, 30, 32), 3, 30, 32));
  const auto graph = e.Finish();
  ASSERT_TRUE(graph.ok()) << graph.status();
  const RegionPlan plan = PlanRegions(*graph, false);
  const Grid& needed = plan.values[0][0].needed;
  EXPECT_EQ(needed[2], Positions::Range(20, 22)) << PositionsString(needed[2]);
  EXPECT_EQ(needed[3], Positions::Range(20, 22)) << PositionsString(needed[3]);
  const auto built = BuildPlan(*graph, plan);
  ASSERT_TRUE(built.ok()) << built.status();
  EXPECT_LT(RunTimeFlops(*built), 0.06 * RunTimeFlops(*graph));
}

}  // namespace
}  // namespace mendel
