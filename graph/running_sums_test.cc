#include "graph/running_sums.h"

#include <gtest/gtest.h>

#include <functional>

namespace mendel {
namespace {

Tensor Matrix(const Shape& shape, const std::function<double(int64_t, int64_t)>& at) {
  std::vector<double> values;
  for (int64_t i = 0; i < shape[shape.size() - 2]; ++i) {
    for (int64_t j = 0; j < shape.back(); ++j) values.push_back(at(i, j));
  }
  return Tensor::FromDoubles({DType::kF32, shape}, values);
}

TEST(RunningSums, OfTriangles) {
  const auto lower = RunningSumsOf(Matrix({4, 4}, [](auto i, auto j) { return j <= i ? 2 : 0; }));
  ASSERT_TRUE(lower.has_value());
  EXPECT_EQ(lower->scale, 2);
  EXPECT_FALSE(lower->suffixes);
  EXPECT_EQ(lower->bounds, (std::vector<int64_t>{1, 2, 3, 4}));
  const auto upper =
      RunningSumsOf(Matrix({1, 3, 5}, [](auto i, auto j) { return j > i ? -1 : 0; }));
  ASSERT_TRUE(upper.has_value());
  EXPECT_EQ(upper->scale, -1);
  EXPECT_TRUE(upper->suffixes);
  EXPECT_EQ(upper->bounds, (std::vector<int64_t>{1, 2, 3}));
  const auto strict = RunningSumsOf(Matrix({4, 4}, [](auto i, auto j) { return j < i; }));
  ASSERT_TRUE(strict.has_value());
  EXPECT_EQ(strict->bounds, (std::vector<int64_t>{0, 1, 2, 3}));
  const auto columns = RunningSumsOf(Matrix({4, 3}, [](auto i, auto j) { return j <= i; }), true);
  ASSERT_TRUE(columns.has_value());
  EXPECT_TRUE(columns->suffixes);
  EXPECT_EQ(columns->bounds, (std::vector<int64_t>{0, 1, 2}));
}

TEST(RunningSums, OfNothingElse) {
  EXPECT_FALSE(RunningSumsOf(Matrix({4, 4}, [](auto, auto) { return 1; })).has_value());
  EXPECT_FALSE(RunningSumsOf(Matrix({4, 4}, [](auto, auto) { return 0; })).has_value());
  EXPECT_FALSE(RunningSumsOf(Matrix({4, 4}, [](auto i, auto j) { return i == j; })).has_value());
  EXPECT_FALSE(RunningSumsOf(Matrix({4, 4}, [](auto i, auto j) {
                 return j <= i ? static_cast<double>(i + 1) : 0;
               })).has_value());
  EXPECT_FALSE(RunningSumsOf(Tensor::Filled({DType::kF32, {2, 4, 4}}, 1)).has_value());
  EXPECT_FALSE(RunningSumsOf(Tensor::Filled({DType::kF32, {4}}, 1)).has_value());
}

TEST(RowRuns, OfRowsWithOneRunOfOneNumber) {
  const auto band = RowRunsOf(Matrix({3, 4}, [](auto i, auto j) { return j == i || j == i + 1; }));
  ASSERT_TRUE(band.has_value());
  EXPECT_EQ(band->scale, 1);
  EXPECT_EQ(band->runs, (std::vector<RowRun>{{0, 2}, {1, 3}, {2, 4}}));
  const auto columns =
      RowRunsOf(Matrix({3, 2}, [](auto i, auto j) { return j == 0 && i > 0 ? -2 : 0; }), true);
  ASSERT_TRUE(columns.has_value());
  EXPECT_EQ(columns->scale, -2);
  EXPECT_EQ(columns->runs, (std::vector<RowRun>{{1, 3}, {0, 0}}));
  EXPECT_FALSE(RowRunsOf(Matrix({2, 3}, [](auto, auto j) { return j != 1; })).has_value());
  EXPECT_FALSE(RowRunsOf(Matrix({2, 3}, [](auto i, auto) { return i + 1; })).has_value());
}

TEST(RunningSums, OnlyDiagonalsMakeTriangles) {
  for (int64_t diagonal : {-2, -1, 0, 1}) {
    EXPECT_TRUE(
        IsTriangle(Matrix({5, 4}, [&](auto i, auto j) { return j <= i + diagonal ? 1 : 0; })));
    EXPECT_TRUE(IsTriangle(
        Matrix({1, 1, 5, 4}, [&](auto i, auto j) { return j >= i + diagonal ? 1 : 0; })));
  }
  EXPECT_FALSE(IsTriangle(Matrix({2, 2}, [](auto i, auto j) { return j <= i; })));
  EXPECT_FALSE(IsTriangle(Matrix({6, 4}, [](auto i, auto j) { return j <= i / 2; })));
}

}  // namespace
}  // namespace mendel
