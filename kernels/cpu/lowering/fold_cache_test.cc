#include "kernels/cpu/lowering/fold_cache.h"

#include <gtest/gtest.h>

#include "base/status.h"
#include "graph/emitter.h"
#include "kernels/cpu/lowering/fold.h"

namespace mendel::cpu {
namespace {

Tensor Weights() {
  std::vector<double> values(1 << 15);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i % 97);
  return Tensor::FromDoubles({DType::kF32, {1 << 15}}, values);
}

/// x + weights * factor.
Graph Scaled(const Tensor& weights, double factor) {
  Emitter e("scaled");
  const ValueId x = e.Input("x", weights.type());
  const ValueId scale = e.Constant(Tensor::Scalar(DType::kF32, factor));
  e.Output("y", e.Add(x, e.Mul(e.Constant(weights, "w"), scale)));
  auto graph = e.Finish();
  MENDEL_CHECK(graph.ok());
  return *std::move(graph);
}

ValueId Product(const Graph& graph) { return graph.node(graph.outputs()[0].value.node).inputs[1]; }

TEST(FoldCache, ProgramsShareWhatIsKept) {
  const Tensor weights = Weights();
  const Graph first = Scaled(weights, 2), second = Scaled(weights, 2), other = Scaled(weights, 3);
  const auto kept = KeepFoldedValues();
  Folded a(first), b(second), c(other);
  const std::byte* const bytes = a.Rounded(Product(first)).bytes().data();
  EXPECT_EQ(b.Rounded(Product(second)).bytes().data(), bytes);
  EXPECT_NE(c.Rounded(Product(other)).bytes().data(), bytes);
  EXPECT_EQ(c.Rounded(Product(other)).DoubleAt(96), 288);
  EXPECT_EQ(b.Rounded(Product(second)).DoubleAt(96), 192);
}

TEST(FoldCache, NothingIsKeptWithoutAUser) {
  const Tensor weights = Weights();
  const Graph graph = Scaled(weights, 2);
  std::string key = "test";
  KeepRounded(key, weights, {weights});
  EXPECT_FALSE(FindRounded(key).has_value());
  {
    const auto kept = KeepFoldedValues();
    const auto again = KeepFoldedValues();
    KeepRounded(key, weights, {weights});
    ASSERT_TRUE(FindRounded(key).has_value());
    EXPECT_EQ(FindRounded(key)->bytes().data(), weights.bytes().data());
    EXPECT_FALSE(FindRounded("").has_value());
  }
  EXPECT_FALSE(FindRounded(key).has_value());
}

}  // namespace
}  // namespace mendel::cpu
