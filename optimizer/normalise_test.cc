#include "optimizer/normalise.h"

#include <gtest/gtest.h>

#include "graph/evaluate.h"

namespace mendel {
namespace {

TEST(Normalise, ViewsOfWeightsStay) {
  // Merged convolutions leave such expressions behind; a backend folds them when it loads.
  GraphBuilder builder;
  const ValueId x = builder.Input("x", {DType::kF32, {2, 3}});
  const ValueId w = builder.Constant(Tensor::FromDoubles({DType::kF32, {6}}, std::vector<double>{1, 2, 3, 4, 5, 6}), "w");
  const ValueId first = *builder.Add("Reshape", {w}, {{"shape", Shape{3, 2}}});
  const ValueId second = *builder.Add("Reshape", {first}, {{"shape", Shape{2, 3}}});
  builder.Output("y", *builder.Add("Add", {x, second}));
  const Graph graph = *builder.Build();
  const auto normal = Normalise(graph, {});
  ASSERT_TRUE(normal.ok()) << normal.status();
  const std::vector<HostValue> inputs = {HostValue::FromTensor(Tensor::Filled({DType::kF32, {2, 3}}, 1))};
  EXPECT_EQ((*Evaluate(*normal, inputs))[0].scalars, (*Evaluate(graph, inputs))[0].scalars);
}

}  // namespace
}  // namespace mendel
