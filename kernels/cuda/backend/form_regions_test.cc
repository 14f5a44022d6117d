#include "kernels/cuda/backend/form_regions.h"

#include <gtest/gtest.h>

#include "base/status.h"
#include "graph/text.h"

namespace mendel::cuda {
namespace {

using Regions = std::vector<std::vector<int32_t>>;

constexpr char kAttributes[] =
    " {dilations = [1, 1], group = 1, pads = [0, 0, 0, 0], strides = [1, 1]}\n";

Graph RegionGraph(const std::string& rest) {
  auto graph = ParseGraph(Cat(R"(graph "g" {
    %0 = Input() {name = "x", shape = [1, 2, 5, 5]}
    %1 = Constant() {symbol = "w", value = f32[2, 2, 1, 1]{1, -2, 3, 0.5}}
    %2 = Conv(%0, %1))",
                              kAttributes, rest, "}"));
  EXPECT_TRUE(graph.ok()) << graph.status();
  return *std::move(graph);
}

TEST(FormRegions, ElementwiseOperatorsConnect) {
  const Graph graph =
      RegionGraph(Cat("%3 = Sigmoid(%2)\n%4 = Mul(%2, %3)\n%5 = Conv(%4, %1)", kAttributes,
                      "%6 = Add(%5, %2)\n%7 = Conv(%6, %1)", kAttributes, "return \"y\" = %7"));
  EXPECT_EQ(FormRegions(graph, {2, 5, 7}), (Regions{{2, 5, 7}}));
  EXPECT_EQ(FormRegions(graph, {2, 7}), (Regions{{2, 7}}));  // by the Add
  EXPECT_EQ(FormRegions(graph, {}), Regions{});
  // A node that no library computes keeps the graph's form.
  const Graph chain = RegionGraph(
      Cat("%3 = Conv(%2, %1)", kAttributes, "%4 = Conv(%3, %1)", kAttributes, "return \"y\" = %4"));
  EXPECT_EQ(FormRegions(chain, {2, 3, 4}), (Regions{{2, 3, 4}}));
  EXPECT_EQ(FormRegions(chain, {2, 4}), (Regions{{2}, {4}}));
}

TEST(FormRegions, PoolsConnect) {
  const Graph graph = RegionGraph(
      Cat("%3 = MaxPool(%2) {ceil_mode = 0, dilations = [1, 1], kernel_shape = [2, 2], pads = "
          "[0, 0, 0, 0], strides = [2, 2]}\n%4 = Conv(%3, %1)",
          kAttributes, "return \"y\" = %4"));
  EXPECT_EQ(FormRegions(graph, {2, 4}), (Regions{{2, 4}}));
}

TEST(FormRegions, MovesConnectAllThatTheyJoin) {
  const Graph graph = RegionGraph(Cat("%3 = Conv(%0, %1)", kAttributes,
                                      "%4 = Concat(%2, %3) {axis = 2}\n%5 = Conv(%4, %1)",
                                      kAttributes, "return \"y\" = %5"));
  EXPECT_EQ(FormRegions(graph, {2, 3, 5}), (Regions{{2, 3, 5}}));
}

TEST(FormRegions, OtherOperatorsSeparate) {
  const Graph graph = RegionGraph(
      Cat("%3 = Softmax(%2) {axis = 1}\n%4 = Conv(%3, %1)", kAttributes, "return \"y\" = %4"));
  EXPECT_EQ(FormRegions(graph, {2, 4}), (Regions{{2}, {4}}));
}

TEST(FormRegions, ReadersOfOneValueShareItsConversion) {
  const Graph graph = RegionGraph(Cat("%3 = Softmax(%2) {axis = 1}\n%4 = Conv(%3, %1)", kAttributes,
                                      "%5 = Neg(%3)\n%6 = Conv(%5, %1)", kAttributes,
                                      "return \"y\" = %4, \"z\" = %6"));
  EXPECT_EQ(FormRegions(graph, {2, 4, 6}), (Regions{{2}, {4, 6}}));
}

/// A broadcast operand is converted whatever reads it, and weights are transposed once: neither
/// connects regions.
TEST(FormRegions, BroadcastsAndWeightsDoNot) {
  const Graph graph =
      RegionGraph(Cat("%3 = ReduceMean(%2) {axes = [2, 3], keepdims = 1}\n%4 = Conv(%3, %1)",
                      kAttributes, "%5 = Softmax(%2) {axis = 1}\n%6 = Conv(%5, %1)", kAttributes,
                      "%7 = Mul(%6, %4)\nreturn \"y\" = %7"));
  EXPECT_EQ(FormRegions(graph, {2, 4, 6}), (Regions{{2}, {4}, {6}}));
}

}  // namespace
}  // namespace mendel::cuda
