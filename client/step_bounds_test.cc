#include "client/step_bounds.h"

#include <gtest/gtest.h>

#include "graph/text.h"

namespace mendel {
namespace {

TEST(StepBounds, ArithmeticOrMemoryWhicheverTakesLonger) {
  const auto graph = ParseGraph(R"(graph "g" {
    %0 = Input() {name = "x", shape = [64, 512]}
    %1 = Input() {name = "w", shape = [512, 256]}
    %2 = MatMul(%0, %1)
    %3 = Relu(%2)
    return "y" = %3
  })");
  ASSERT_TRUE(graph.ok()) << graph.status();
  const DeviceRates rates = {.flops = 1e9, .bytes = 1e9, .operator_seconds = 0.5};
  const std::vector<Step> steps = {
      {"both", {2, 3}, "fused", 0}, {"alone", {3}, "tile", 0}, {"reorder", {}, "copy", 0}};
  const std::vector<StepBound> bounds = BoundsOf(*graph, steps, rates, 2);
  ASSERT_EQ(bounds.size(), 3u);
  // 2 * 64 * 512 * 256 operations and 64 * 256 more on two cores; 0.7 MB take less time.
  EXPECT_NEAR(bounds[0].seconds, 0.5 + (2.0 * 64 * 512 * 256 + 64 * 256) / 2e9, 1e-9);
  EXPECT_EQ(bounds[0].limit, "arithmetic");
  EXPECT_NEAR(bounds[1].seconds, 0.5 + 2.0 * 64 * 256 * 4 / 1e9, 1e-9) << "read and written once";
  EXPECT_EQ(bounds[1].limit, "memory");
  EXPECT_EQ(bounds[2].seconds, 0) << "a conversion computes no node";
  EXPECT_TRUE(bounds[1].IsMissedBy(4.1 * bounds[1].seconds));
  EXPECT_FALSE(bounds[1].IsMissedBy(3.9 * bounds[1].seconds));
}

}  // namespace
}  // namespace mendel
