#include "optimizer/automatic_budget.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "graph/emitter.h"

namespace mendel {
namespace {

/// `layers` products and activations in a row; `widths` of them are unlike.
Graph Chain(int layers, int widths, int64_t rows = 16) {
  Emitter e("chain");
  ValueId x = e.Input("x", {DType::kF32, {rows, 8}});
  for (int layer = 0; layer < layers; ++layer) {
    const int64_t inner = e.shape(x)[1], outer = 8 + layer % widths;
    x = e.Op("Relu", {e.MatMul(x, e.Constant(Tensor::Filled({DType::kF32, {inner, outer}}, 0.1), "w" + std::to_string(layer)))});
  }
  e.Output("y", x);
  return *e.Finish();
}

TEST(AutomaticBudget, GrowsWithUnlikeContractionsAlone) {
  const double one = AutomaticBudget({Chain(1, 1)});
  EXPECT_DOUBLE_EQ(AutomaticBudget({Chain(20, 1)}), one);  // equal blocks are searched once
  const double unlike = AutomaticBudget({Chain(12, 12)});
  EXPECT_GT(unlike, one);
  EXPECT_DOUBLE_EQ(AutomaticBudget({Chain(24, 12)}),
                   unlike + (unlike - one) / 11);  // one more: back from the widest to the narrowest
}

TEST(AutomaticBudget, IsBoundedAGraphAndCountsBundlesTogether) {
  const double most = AutomaticBudget({Chain(80, 80)});
  EXPECT_DOUBLE_EQ(AutomaticBudget({Chain(100, 100)}), most);
  EXPECT_DOUBLE_EQ(AutomaticBudget({Chain(3, 3), Chain(3, 3)}), AutomaticBudget({Chain(3, 3)}) + AutomaticBudget({Chain(0, 1)}));
  EXPECT_LE(AutomaticBudget({Chain(80, 80), Chain(80, 80, 8)}), 2 * most);
}

}  // namespace
}  // namespace mendel
