#include "graph/rewrite.h"

#include <gtest/gtest.h>

#include "base/work.h"
#include "graph/emitter.h"
#include "graph/text.h"
#include "graph/weight_bytes.h"

namespace mendel {
namespace {

Graph Parse(const std::string& text) {
  auto graph = ParseGraph(text);
  EXPECT_TRUE(graph.ok()) << graph.status();
  return *std::move(graph);
}

Graph Chain() {
  return Parse(R"(graph "g" {
    %0 = Input() {name = "x", shape = [2]}
    %1 = Constant() {symbol = "w", value = f32[2]{1, 2}}
    %2 = Add(%0, %1)
    %3 = Relu(%2)
    %4 = Mul(%3, %2)
    return "y" = %4, "z" = %3
  })");
}

TEST(Rewrite, ExtractsAndReplaces) {
  const Graph graph = Chain();
  const auto sub = MakeSubprogram(graph, {2, 3});
  ASSERT_TRUE(sub.ok());
  EXPECT_EQ(sub->inputs.size(), 1u);
  EXPECT_EQ(sub->outputs.size(), 2u);
  const auto extracted = Extract(graph, *sub);
  ASSERT_TRUE(extracted.ok());
  EXPECT_EQ(extracted->nodes().size(), 4u);
  const auto same = Replace(graph, *sub, *extracted);
  ASSERT_TRUE(same.ok()) << same.status();
  EXPECT_EQ(PrintGraph(*same), PrintGraph(graph));
}

TEST(Rewrite, RefusesNonConvexSets) {
  const Graph graph = Chain();
  EXPECT_FALSE(MakeSubprogram(graph, {2, 4}).ok());
  EXPECT_FALSE(MakeSubprogram(graph, {0}).ok());
}

Graph LongChain(int32_t length) {
  GraphBuilder builder("chain");
  ValueId x = builder.Input("x", {DType::kF32, {2}});
  for (int32_t k = 0; k < length; ++k) x = *builder.Add("Relu", {x});
  builder.Output("y", x);
  return *builder.Build();
}

Replacement TanhAt(const Graph& graph, std::vector<int32_t> nodes) {
  Subprogram place = *MakeSubprogram(graph, std::move(nodes));
  return {std::move(place), Parse(R"(graph "t" {
    %0 = Input() {name = "in0", shape = [2]}
    %1 = Tanh(%0)
    return "out0" = %1
  })")};
}

TEST(Rewrite, ReplacesSeveralPlacesAtOnce) {
  const Graph graph = LongChain(5);
  const std::vector<Replacement> two = {TanhAt(graph, {1, 2}), TanhAt(graph, {4})};
  const auto replaced = ReplaceAll(graph, two);
  ASSERT_TRUE(replaced.ok()) << replaced.status();
  const Graph one_by_one =
      *Replace(*Replace(graph, two[1].place, two[1].program), two[0].place, two[0].program);
  EXPECT_EQ(PrintGraph(*replaced), PrintGraph(one_by_one));
  const std::vector<Replacement> crossed = {two[1], two[0]};
  EXPECT_TRUE(absl::IsInvalidArgument(ReplaceAll(graph, crossed).status()));
}

/// Operands and readers of a place may stand between its nodes.
TEST(Rewrite, KeepsTheOrderAroundAPlace) {
  const Graph graph = Parse(R"(graph "g" {
    %0 = Input() {name = "x", shape = [2]}
    %1 = Relu(%0)
    %2 = Neg(%1)
    %3 = Tanh(%0)
    %4 = Add(%1, %3)
    return "y" = %4, "z" = %2
  })");
  const Subprogram place = *MakeSubprogram(graph, {1, 4});
  const auto same = Replace(graph, place, *Extract(graph, place));
  ASSERT_TRUE(same.ok()) << same.status();
  EXPECT_TRUE(CheckGraph(*same).ok());
  EXPECT_EQ(same->nodes().size(), graph.nodes().size());
}

TEST(Rewrite, TakesWorkOfThePlaceOutOfALongGraph) {
  const Graph graph = LongChain(1 << 14);
  const int64_t before = WorkDone();
  for (int32_t k = 1; k <= 1 << 14; ++k)
    ASSERT_TRUE(Extract(graph, *MakeSubprogram(graph, {k})).ok());
  EXPECT_LE(WorkDone() - before, 8 << 14);
}

TEST(Rewrite, KnowsWeightsAndOutputsOfEveryNode) {
  const Graph graph = Chain();
  EXPECT_EQ(graph.constant(), (std::vector<bool>{false, true, false, false, false}));
  EXPECT_TRUE(graph.IsOutput(3));
  EXPECT_FALSE(graph.IsOutput(2));
}

TEST(Rewrite, CountsBytesOfWeightsThatAreMade) {
  const Graph graph = Parse(R"(graph "g" {
    %0 = Input() {name = "x", shape = [2]}
    %1 = Constant() {symbol = "w", value = f32[2]{1, 2}}
    %2 = Constant() {symbol = "v", value = f32[1,2]{1, 2}}
    %3 = Add(%1, %2)
    %4 = Reshape(%3) {shape = [2]}
    %5 = Reshape(%2) {shape = [2]}
    %6 = Mul(%0, %4)
    %7 = Mul(%6, %3)
    %8 = Mul(%7, %5)
    return "y" = %8
  })");
  EXPECT_EQ(StoredBytes(graph), 16);
  EXPECT_EQ(MadeWeightBytes(graph), 8);
}

TEST(Rewrite, DeduplicatesEqualNodes) {
  const Graph graph = Parse(R"(graph "g" {
    %0 = Input() {name = "x", shape = [2]}
    %1 = Relu(%0) "a"
    %2 = Relu(%0) "b"
    %3 = Mul(%1, %2)
    return "y" = %3
  })");
  const auto small = Deduplicate(graph);
  ASSERT_TRUE(small.ok());
  EXPECT_EQ(small->nodes().size(), 3u);
}

TEST(Emitter, CopiesAWeightExpressionOnceANode) {
  constexpr int kDoublings = 60;
  GraphBuilder builder;
  ValueId value = builder.Constant(Tensor::Filled({DType::kF32, {4}}, 0.25), "w");
  for (int k = 0; k < kDoublings; ++k) value = *builder.Add("Add", {value, value});
  builder.Output("y", value);
  const Graph graph = *builder.Build();
  Emitter e;
  e.Output("y", e.CopyConstantExpression(graph, value));
  const auto copy = e.Finish();
  ASSERT_TRUE(copy.ok()) << copy.status();
  EXPECT_EQ(copy->nodes().size(), kDoublings + 1u);
}

}  // namespace
}  // namespace mendel
