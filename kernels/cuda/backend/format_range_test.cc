#include "kernels/cuda/backend/format_range.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <span>
#include <vector>

#include "graph/graph.h"

namespace mendel::cuda {
namespace {

/// A graph of x + constant; queries are about the sum.
struct Sum {
  explicit Sum(const Tensor& constant) {
    GraphBuilder builder;
    const ValueId x = builder.Input("x", {DType::kF32, constant.shape()});
    sum = *builder.Add("Add", {x, builder.Constant(constant, "c")});
    builder.Output("y", sum);
    graph = *builder.Build();
  }
  bool Exceeds(DType format) const { return ExceedsByConstants(graph, sum, format); }
  ValueId sum;
  Graph graph;
};

Tensor Numbers(const std::vector<double>& numbers) {
  return Tensor::FromDoubles({DType::kF32, {static_cast<int64_t>(numbers.size())}}, numbers);
}

TEST(FormatRange, LargestFiniteNumbersCount) {
  EXPECT_FALSE(Sum(Numbers({1, -65504, 3})).Exceeds(DType::kF16));
  EXPECT_TRUE(Sum(Numbers({1, -65505, 3})).Exceeds(DType::kF16));
  EXPECT_FALSE(Sum(Numbers({1, -65505, 3})).Exceeds(DType::kBF16));
  EXPECT_TRUE(Sum(Numbers({-3.4028234e38})).Exceeds(DType::kBF16));
  // Infinity stays infinite, and NaN is no number.
  EXPECT_FALSE(Sum(Numbers({-INFINITY, NAN, INFINITY})).Exceeds(DType::kF16));
  EXPECT_FALSE(Sum(Numbers({})).Exceeds(DType::kF16));
}

/// The test changes a tensor's bytes, which nobody else may do, to see whether they are read
/// again.
TEST(FormatRange, ATensorIsReadOnce) {
  const auto numbers = std::make_shared<std::vector<float>>(4, 1.0f);
  const Tensor tensor({DType::kF32, {4}}, std::as_bytes(std::span(*numbers)), numbers);
  EXPECT_FALSE(Sum(tensor).Exceeds(DType::kF16));
  (*numbers)[2] = 1e6f;
  EXPECT_FALSE(Sum(tensor).Exceeds(DType::kF16));
  EXPECT_TRUE(Sum(Numbers({1, 1, 1e6, 1})).Exceeds(DType::kF16));
}

/// The cache is bounded: the first tensor is read again, with its new numbers.
TEST(FormatRange, WhatIsRememberedIsBounded) {
  constexpr int64_t kCount = int64_t{3} << 20;  // 12 MiB
  const auto numbers = std::make_shared<std::vector<float>>(4, 1.0f);
  const Tensor first({DType::kF32, {4}}, std::as_bytes(std::span(*numbers)), numbers);
  EXPECT_FALSE(Sum(first).Exceeds(DType::kF16));
  (*numbers)[2] = 1e6f;
  for (int k = 0; k < 6; ++k)
    EXPECT_FALSE(Sum(Tensor::Filled({DType::kF32, {kCount}}, k)).Exceeds(DType::kF16));
  EXPECT_TRUE(Sum(first).Exceeds(DType::kF16));
}

}  // namespace
}  // namespace mendel::cuda
