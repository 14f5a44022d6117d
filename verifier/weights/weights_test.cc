#include "verifier/weights/weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace mendel {
namespace {

Graph WithWeights(double first, double second) {
  GraphBuilder builder;
  const ValueId x = builder.Input("x", {DType::kF32, {2}});
  const auto sum =
      builder.Add("Add", {x, builder.Constant(Tensor::Filled({DType::kF32, {2}}, first), "first")});
  const auto all = builder.Add(
      "Add", {*sum, builder.Constant(Tensor::Filled({DType::kF32, {2}}, second), "second")});
  builder.Output("y", *all);
  return *builder.Build();
}

TEST(DifferingWeights, NamesThem) {
  EXPECT_THAT(DifferingWeights(WithWeights(1, 2), WithWeights(1, 2)), testing::IsEmpty());
  EXPECT_THAT(DifferingWeights(WithWeights(1, 2), WithWeights(1, 3)),
              testing::ElementsAre("second"));
}

}  // namespace
}  // namespace mendel
