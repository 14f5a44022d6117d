#include "mutator/zero_blocks.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "base/random.h"

namespace mendel {
namespace {

struct Matrix {
  int64_t rows = 0, columns = 0;
  std::vector<bool> zero;  ///< row by row
  bool IsZero(int64_t row, int64_t column) const {
    return zero[static_cast<size_t>(row * columns + column)];
  }
};

Matrix RandomMatrix(uint64_t seed) {
  Rng rng(seed);
  Matrix matrix{rng.Between(1, 8), rng.Between(1, 8), {}};
  const double share = 0.25 * static_cast<double>(rng.Between(0, 4));  // of zeros
  for (int64_t k = 0; k < matrix.rows * matrix.columns; ++k) matrix.zero.push_back(rng.Flip(share));
  return matrix;
}

/// Rows and columns that nonzero numbers connect with row `row`.
std::pair<std::set<int64_t>, std::set<int64_t>> ConnectedWith(const Matrix& matrix, int64_t row) {
  std::set<int64_t> rows = {row}, columns;
  for (size_t before = 0; before != rows.size() + columns.size();) {
    before = rows.size() + columns.size();
    for (int64_t i = 0; i < matrix.rows; ++i) {
      for (int64_t j = 0; j < matrix.columns; ++j) {
        if (matrix.IsZero(i, j) || rows.count(i) + columns.count(j) == 0) continue;
        rows.insert(i);
        columns.insert(j);
      }
    }
  }
  return {rows, columns};
}

TEST(ZeroBlocks, AreWhatNonzeroNumbersConnect) {
  for (uint64_t seed = 1; seed <= 500; ++seed) {
    const Matrix matrix = RandomMatrix(seed);
    std::set<std::pair<std::set<int64_t>, std::set<int64_t>>> want, have;
    for (int64_t row = 0; row < matrix.rows; ++row) {
      if (auto block = ConnectedWith(matrix, row); !block.second.empty())
        want.insert(std::move(block));
    }
    for (const ZeroBlock& block :
         ZeroBlocksOf(matrix.rows, matrix.columns,
                      [&](int64_t i, int64_t j) { return matrix.IsZero(i, j); })) {
      have.insert(
          {{block.rows.begin(), block.rows.end()}, {block.columns.begin(), block.columns.end()}});
    }
    EXPECT_EQ(have, want) << "seed " << seed;
  }
}

TEST(ZeroBlocks, ADenseMatrixIsHardlyRead) {
  int64_t reads = 0;
  const auto is_zero = [&](int64_t, int64_t) {
    ++reads;
    return false;
  };
  EXPECT_EQ(ZeroBlocksOf(1000, 1000, is_zero).size(), 1u);
  EXPECT_LT(reads, 3000);
}

}  // namespace
}  // namespace mendel
