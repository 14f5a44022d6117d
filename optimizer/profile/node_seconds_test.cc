// Conversions between layouts in the costs of nodes, and what an extraction makes of them.
#include "optimizer/profile/node_seconds.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "base/status.h"
#include "optimizer/egraph/egraph.h"
#include "optimizer/egraph/extract.h"

namespace mendel {
namespace {

Step Computes(std::vector<int32_t> nodes) {
  return {.name = "", .nodes = std::move(nodes), .kernel = ""};
}
Step Converts(std::vector<int32_t> requested_by = {}) {
  return {
      .name = "", .nodes = {}, .kernel = "", .flops = 0, .requested_by = std::move(requested_by)};
}

TEST(NodeSeconds, ConversionsCountForThoseThatAsk) {
  const std::vector<Step> steps = {Converts(),    Computes({1, 2}), Converts({2, 3}), Computes({3}),
                                   Converts({3}), Computes({4}),    Converts()};
  const std::vector<double> seconds = {1, 2, 4, 8, 16, 32, 64};
  EXPECT_EQ(SecondsByNode(steps, seconds, 6),
            (std::vector<double>{0, 1 + 2 + 2, 0, 2 + 8 + 16, 32, 0}));
  EXPECT_EQ(SecondsByNode({}, {}, 2), (std::vector<double>{0, 0}));
}

/// Costs of the calls of a program that turns its values, calls on them and turns them back.
std::vector<double> TurnedSeconds(size_t calls, double call, double conversion) {
  std::vector<Step> steps = {Converts({0})};
  std::vector<double> seconds = {conversion};
  for (size_t k = 0; k < calls; ++k) {
    steps.push_back(Computes({static_cast<int32_t>(k)}));
    seconds.push_back(call);
  }
  steps.push_back(Converts({static_cast<int32_t>(calls - 1)}));
  seconds.push_back(conversion);
  return SecondsByNode(steps, seconds, calls);
}

/// The cost of the cheapest program: `calls` of a second each, or as many turned ones.
double ExtractedSeconds(size_t calls, const std::vector<double>& turned) {
  EGraph egraph;
  std::vector<double> cost;
  const auto add = [&](const char* op, const std::vector<ClassId>& operands, double seconds) {
    Node node;
    node.op = &GetOp(op);
    node.attrs = {{"name", Cat("n", cost.size())}};
    node.outputs = {{DType::kF32, {4}}};
    cost.push_back(seconds);
    return egraph.node(*egraph.Add(node, operands)).outputs[0];
  };
  const ClassId input = add("Input", {}, 0);
  ClassId plain = input, other = input;
  for (size_t k = 0; k < calls; ++k) plain = add("Relu", {plain}, 1);
  for (size_t k = 0; k < calls; ++k) other = add("Relu", {other}, turned[k]);
  EXPECT_TRUE(egraph.Merge(plain, other).ok());
  EXPECT_TRUE(egraph.Rebuild().ok());
  const auto extraction = ExtractProgram(egraph, {plain}, cost);
  EXPECT_TRUE(extraction.ok()) << extraction.status();
  return extraction->cost;
}

/// A call that is faster in another layout is not worth two conversions; three in a row are.
TEST(NodeSeconds, ALayoutIsExtractedWhereItPaysForItsConversions) {
  EXPECT_DOUBLE_EQ(ExtractedSeconds(1, TurnedSeconds(1, 0.6, 0.55)), 1);
  EXPECT_DOUBLE_EQ(ExtractedSeconds(2, TurnedSeconds(2, 0.6, 0.55)), 2);
  EXPECT_DOUBLE_EQ(ExtractedSeconds(3, TurnedSeconds(3, 0.6, 0.55)), 3 * 0.6 + 2 * 0.55);
  EXPECT_DOUBLE_EQ(ExtractedSeconds(1, TurnedSeconds(1, 0.6, 0.15)), 0.6 + 2 * 0.15);
}

}  // namespace
}  // namespace mendel
