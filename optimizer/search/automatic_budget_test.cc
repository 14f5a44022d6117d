#include "optimizer/search/automatic_budget.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "graph/emitter.h"

namespace mendel {
namespace {

constexpr double kNothing = 0.01;  // seconds of arithmetic in a small graph

/// `layers` products and activations in a row; `widths` of them are unlike.
Graph Chain(int layers, int widths, int64_t rows = 16) {
  Emitter e("chain");
  ValueId x = e.Input("x", {DType::kF32, {rows, 8}});
  for (int layer = 0; layer < layers; ++layer) {
    const int64_t inner = e.shape(x)[1], outer = 8 + layer % widths;
    x = e.Op("Relu", {e.MatMul(x, e.Constant(Tensor::Filled({DType::kF32, {inner, outer}}, 0.1),
                                             "w" + std::to_string(layer)))});
  }
  e.Output("y", x);
  return *e.Finish();
}

TEST(AutomaticBudget, GrowsWithUnlikeContractions) {
  const double one = AutomaticBudget({Chain(1, 1)});
  EXPECT_NEAR(AutomaticBudget({Chain(20, 1)}), one, kNothing);  // equal blocks are searched once
  const double unlike = AutomaticBudget({Chain(12, 12)});
  EXPECT_GT(unlike, one);
  EXPECT_NEAR(AutomaticBudget({Chain(24, 12)}), unlike + (unlike - one) / 11,
              kNothing);  // one more: back from the widest to the narrowest
}

TEST(AutomaticBudget, IsBoundedAGraphAndCountsBundlesTogether) {
  const double most = AutomaticBudget({Chain(80, 80)});
  EXPECT_NEAR(AutomaticBudget({Chain(100, 100)}), most, kNothing);
  EXPECT_NEAR(AutomaticBudget({Chain(3, 3), Chain(3, 3)}),
              AutomaticBudget({Chain(3, 3)}) + AutomaticBudget({Chain(0, 1)}), kNothing);
  EXPECT_LE(AutomaticBudget({Chain(80, 80), Chain(80, 80, 8)}), 2 * most);
}

TEST(AutomaticBudget, GrowsWithWhatARunTakes) {
  const double small = AutomaticBudget({Chain(1, 1)});
  const int64_t rows = int64_t{1} << 27;  // of 2 * 8 * 8 operations, 17.2 GFLOP a product
  EXPECT_NEAR(AutomaticBudget({Chain(4, 1, rows)}) - small, 4 * 17.2 / 5, 0.1);
  EXPECT_NEAR(AutomaticBudget({Chain(100, 1, rows)}) - small, 120, 0.1);
}

TEST(AutomaticBudget, TheGatesLimitGrowsWithNodesArithmeticAndInputs) {
  EXPECT_GT(AutomaticGateLimit(Chain(4, 1), 1), AutomaticGateLimit(Chain(2, 1), 1));
  EXPECT_GT(AutomaticGateLimit(Chain(2, 1, 1 << 27), 1), AutomaticGateLimit(Chain(2, 1), 1));
  EXPECT_GT(AutomaticGateLimit(Chain(2, 1), 9), AutomaticGateLimit(Chain(2, 1), 1));
}

}  // namespace
}  // namespace mendel
