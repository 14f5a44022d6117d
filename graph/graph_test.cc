#include "graph/graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/evaluate.h"
#include "graph/text.h"

namespace mendel {
namespace {

TEST(GraphBuilder, InfersSharesAndPrunes) {
  GraphBuilder builder("g");
  const ValueId x = builder.Input("x", {DType::kF32, {2, 2}});
  const ValueId w = builder.Constant(Tensor::Filled({DType::kF32, {2, 2}}, 3), "w");
  EXPECT_EQ(w, builder.Constant(Tensor::Filled({DType::kF32, {2, 2}}, 3), "w"));
  const auto unused = builder.Add("Relu", {w});
  ASSERT_TRUE(unused.ok());
  const auto y = builder.Add("Add", {x, w});
  ASSERT_TRUE(y.ok());
  builder.Output("y", *y);
  const auto graph = builder.Build();
  ASSERT_TRUE(graph.ok());
  EXPECT_EQ(graph->nodes().size(), 3u);
  EXPECT_TRUE(CheckGraph(*graph).ok());
}

TEST(GraphBuilder, RefusesByName) {
  GraphBuilder builder;
  const ValueId x = builder.Input("x", {DType::kF32, {2, 3}});
  EXPECT_EQ(builder.Add("Nonsense", {x}).status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(builder.Add("MatMul", {x, x}).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(builder.Add("Relu", {x}, {{"alpha", 1.0}}).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(builder.Add("Relu", {{7, 0}}).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(Evaluate, ConvolvesByHand) {
  const auto graph = ParseGraph(R"(graph "conv" {
    %0 = Input() {name = "x", shape = [1, 1, 3, 3]}
    %1 = Constant() {value = f32[1,1,2,2]{1, 2, 3, 4}}
    %2 = Conv(%0, %1) {strides = [1, 1], dilations = [1, 1], pads = [0, 0, 1, 0]} : f32[1,1,3,2]
    return "y" = %2
  })");
  ASSERT_TRUE(graph.ok()) << graph.status();
  const HostValue x = HostValue::FromTensor(Tensor::FromDoubles(
      {DType::kF32, {1, 1, 3, 3}}, std::vector<double>{1, 2, 3, 4, 5, 6, 7, 8, 9}));
  const auto y = Evaluate(*graph, std::vector<HostValue>{x});
  ASSERT_TRUE(y.ok());
  EXPECT_THAT((*y)[0].scalars, testing::ElementsAre(37, 47, 67, 77, 23, 26));
}

}  // namespace
}  // namespace mendel
