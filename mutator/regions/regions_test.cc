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
#include "mutator/regions/select.h"
#include "mutator/regions/split_parts.h"
#include "mutator/regions/zeros.h"

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
    const Graph graph = RandomRegionsProgram(rng, seed % 2 == 0);
    SCOPED_TRACE(Cat("seed ", seed));
    for (const Known known : {Known::kNothing, Known::kRepeats, Known::kZeros}) {
      const auto built = BuildPlan(graph, PlanRegions(graph, known));
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

/// `graph` with every float value as an output, and those values.
Graph WithAllValues(const Graph& graph, std::vector<ValueId>& values) {
  Emitter e("all");
  std::vector<ValueId> copies;
  const std::vector<ValueId> inputs = e.InputsOf(graph);
  size_t next = 0;
  for (const Node& node : graph.nodes()) {
    std::vector<ValueId> operands;
    for (ValueId value : node.inputs) operands.push_back(copies[static_cast<size_t>(value.node)]);
    copies.push_back(IsInput(node) ? inputs[next++] : CopyNode(e, node, operands)[0]);
    if (!IsFloat(node.outputs[0].dtype)) continue;
    values.push_back({static_cast<int32_t>(copies.size()) - 1, 0});
    e.Output(Cat("v", values.size()), copies.back());
  }
  return *e.Finish();
}

/// Positions along `axis` at which the value is zero in every run.
std::vector<bool> ZeroSlices(const std::vector<std::vector<HostValue>>& runs, size_t output,
                             size_t axis) {
  const Shape& shape = runs[0][output].type.shape;
  const int64_t stride = RowMajorStrides(shape)[axis];
  std::vector<bool> zero(static_cast<size_t>(shape[axis]), true);
  for (const auto& run : runs) {
    for (int64_t i = 0; i < NumElements(run[output].type); ++i) {
      if (std::isnan(run[output].At(i))) continue;  // zero times an infinite maximum of nothing
      if (run[output].At(i) != 0) zero[static_cast<size_t>(i / stride % shape[axis])] = false;
    }
  }
  return zero;
}

TEST(Regions, KnownZerosAreZeroAndFound) {
  int64_t zero = 0, found = 0;
  for (uint64_t seed = 1; seed <= RegionPrograms() && !testing::Test::HasFailure(); ++seed) {
    Rng rng(seed);
    const Graph graph = RandomRegionsProgram(rng, true);
    std::vector<ValueId> values;
    const Graph all = WithAllValues(graph, values);
    std::vector<std::vector<HostValue>> runs;
    for (int k = 0; k < 24; ++k) runs.push_back(*Evaluate(all, RandomInputs(rng, all)));
    const auto zeros = ZeroElements(graph);
    for (size_t k = 0; k < values.size(); ++k) {
      const ValueZeros& known = zeros[static_cast<size_t>(values[k].node)][0];
      if (NumElements(graph.type(values[k])) == 0) continue;
      for (size_t axis = 0; axis < known.size(); ++axis) {
        const std::vector<bool> seen = ZeroSlices(runs, k, axis);
        for (size_t p = 0; p < seen.size(); ++p) {
          const bool claimed = !known[axis].empty() && known[axis][p];
          ASSERT_TRUE(!claimed || seen[p]) << "seed " << seed << ", value " << values[k].node
                                           << ", position " << p << " of axis " << axis << "\n"
                                           << PrintGraph(graph);
          zero += seen[p] ? 1 : 0;
          found += claimed ? 1 : 0;
          if (std::getenv("MENDEL_SHOW_MISSED") != nullptr && seen[p] && !claimed)
            std::printf("seed %d value %d axis %zu position %zu %s\n", static_cast<int>(seed),
                        values[k].node, axis, p, PrintGraph(graph).c_str());
        }
      }
    }
  }
  std::printf("[ %lld of %lld zero slices are known ]\n", static_cast<long long>(found),
              static_cast<long long>(zero));
  EXPECT_GT(found, 1000);
  // The rest: rectified constants, and dilated windows that step over all that is not zero.
  EXPECT_GE(static_cast<double>(found), 0.93 * static_cast<double>(zero));
}

/// Rows of zeros, padded on both axes: they stay zeros where the padding is zero, too.
TEST(Regions, PaddingByAnotherNumberIsNotZero) {
  for (const double fill : {0.0, 1.0}) {
    Emitter e("padded");
    const ValueId rows =
        e.Constant(Tensor::FromDoubles({DType::kF32, {3, 1}}, std::vector<double>{0, 2, 0}));
    const ValueId x = e.Mul(e.Input("x", {DType::kF32, {3, 4}}), rows);
    const ValueId y = e.Op("Pad", {x}, {{"pads", Ints{1, 1, 1, 1}}, {"value", fill}});
    e.Output("y", y);
    const auto graph = e.Finish();
    ASSERT_TRUE(graph.ok()) << graph.status();
    const ValueZeros zeros = ZeroElements(*graph)[static_cast<size_t>(y.node)][0];
    const bool zero = fill == 0;
    EXPECT_EQ(zeros[0], zero ? AxisZeros({true, true, false, true, true}) : AxisZeros()) << fill;
    EXPECT_EQ(zeros[1], zero ? AxisZeros({true, false, false, false, false, true}) : AxisZeros())
        << fill;
  }
}

TEST(Regions, PrunedChannelsShrinkBothLayers) {
  Emitter e("pruned");
  const auto literal = [&](Shape shape, int64_t axis) {
    const TensorType type{DType::kF32, shape};
    std::vector<double> values;
    for (int64_t i = 0; i < NumElements(type); ++i)
      values.push_back(i / RowMajorStrides(shape)[static_cast<size_t>(axis)] % 8 < 5
                           ? 0.0
                           : static_cast<double>(i + 1));
    return e.Constant(Tensor::FromDoubles(type, values));
  };
  const ValueId x = e.Input("x", {DType::kF32, {2, 3, 4}});
  const ValueId y = e.Op("Relu", {e.Add(e.MatMul(x, literal({4, 8}, 1)), literal({8}, 0))});
  e.Output("y", e.MatMul(y, e.Constant(Tensor::Filled({DType::kF32, {8, 4}}, 2), "w")));
  const auto graph = e.Finish();
  ASSERT_TRUE(graph.ok()) << graph.status();
  const auto built = BuildPlan(*graph, PlanRegions(*graph, Known::kZeros));
  ASSERT_TRUE(built.ok()) << built.status();
  EXPECT_NEAR(RunTimeFlops(*built) / RunTimeFlops(*graph), 3.0 / 8, 0.05) << PrintGraph(*built);
}

TEST(Regions, WhatIsNotNeededDoesNotMatter) {
  int64_t changed = 0;
  for (uint64_t seed = 1; seed <= RegionPrograms() && !testing::Test::HasFailure(); ++seed) {
    Rng rng(seed);
    const Graph graph = RandomRegionsProgram(rng);
    const RegionPlan plan = PlanRegions(graph, Known::kNothing);
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
  const auto built = BuildPlan(*graph, PlanRegions(*graph, Known::kRepeats));
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
  const RegionPlan plan = PlanRegions(*graph, Known::kNothing);
  const Grid& needed = plan.values[0][0].needed;
  EXPECT_EQ(needed[2], Positions::Range(20, 22)) << PositionsString(needed[2]);
  EXPECT_EQ(needed[3], Positions::Range(20, 22)) << PositionsString(needed[3]);
  const auto built = BuildPlan(*graph, plan);
  ASSERT_TRUE(built.ok()) << built.status();
  EXPECT_LT(RunTimeFlops(*built), 0.06 * RunTimeFlops(*graph));
}

}  // namespace
}  // namespace mendel
