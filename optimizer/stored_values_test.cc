#include "optimizer/stored_values.h"

#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <string>
#include <vector>

#include "base/work.h"

namespace mendel {
namespace {

/// A convolution with kernels of two blocks of channels. Its bias is doubled `doublings` times, so
/// that a walk along every path to the stored bias has 2 to that power steps.
Graph BlocksWithBias(int doublings) {
  GraphBuilder builder;
  const ValueId x = builder.Input("x", {DType::kF32, {1, 8, 8, 8}});
  std::vector<double> kernels;
  for (int out = 0; out < 8; ++out) {
    for (int in = 0; in < 8; ++in) kernels.insert(kernels.end(), 9, out / 4 == in / 4 ? 0.5 : 0);
  }
  const ValueId w =
      builder.Constant(Tensor::FromDoubles({DType::kF32, {8, 8, 3, 3}}, kernels), "w");
  ValueId bias = builder.Constant(Tensor::Filled({DType::kF32, {8}}, 0.25), "b");
  for (int k = 0; k < doublings; ++k) bias = *builder.Add("Add", {bias, bias});
  builder.Output(
      "y", *builder.Add(
               "Conv", {x, w, bias},
               {{"strides", Ints{1, 1}}, {"dilations", Ints{1, 1}}, {"pads", Ints{1, 1, 1, 1}}}));
  return *builder.Build();
}

TEST(StoredValues, AWeightExpressionIsWalkedOnceANode) {
  std::set<std::string> names;
  const int64_t before = WorkDone();
  ASSERT_TRUE(WithUsefulLiterals(BlocksWithBias(60), {}, names).ok());
  EXPECT_TRUE(names.count("w") > 0 && names.count("b") > 0);
  EXPECT_LT(WorkDone() - before, 10000);
}

TEST(StoredValues, WithoutTimeTheGraphStaysAsItIs) {
  const Graph graph = BlocksWithBias(1);
  std::set<std::string> names;
  const std::atomic<bool> stop = true;
  const auto result = WithUsefulLiterals(graph, {}, names, Deadline::Never().StoppedBy(&stop));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(names.empty());
  EXPECT_EQ(&result->nodes(), &graph.nodes());
}

}  // namespace
}  // namespace mendel
