#include "graph/rewrite.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace mendel
