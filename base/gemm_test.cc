#include "base/gemm.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/random.h"

namespace mendel {
namespace {

std::vector<double> RandomValues(Rng& rng, int64_t count) {
  std::vector<double> values(static_cast<size_t>(count));
  for (double& value : values) value = static_cast<double>(rng.Between(-1000, 1000)) / 64;
  return values;
}

struct Problem {
  int64_t m, n, k, extra;
  bool accumulate;
};

/// Products of small dyadic numbers are exact in any order, so that results must be equal to the
/// last bit; columns beyond n must stay as they were.
void CheckAgainstLoop(GemmTarget target, const Problem& problem, Rng& rng) {
  const auto& [m, n, k, extra, accumulate] = problem;
  const int64_t lda = k + extra, ldb = n + extra, ldc = n + 2 * extra;
  const std::vector<double> a = RandomValues(rng, m * lda), b = RandomValues(rng, k * ldb),
                            before = RandomValues(rng, m * ldc);
  std::vector<double> c = before;
  GemmF64On(target, m, n, k, a.data(), lda, b.data(), ldb, c.data(), ldc, accumulate);
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < ldc; ++j) {
      const size_t at = static_cast<size_t>(i * ldc + j);
      double expected = j < n && !accumulate ? 0 : before[at];
      for (int64_t p = 0; j < n && p < k; ++p)
        expected += a[static_cast<size_t>(i * lda + p)] * b[static_cast<size_t>(p * ldb + j)];
      ASSERT_EQ(c[at], expected) << "target " << static_cast<int>(target) << ", " << m << "x" << n
                                 << "x" << k << " at " << i << "," << j;
    }
  }
}

TEST(GemmTest, EveryTargetMatchesTheLoopOnOddShapes) {
  Rng rng(20);
  const std::vector<Problem> fixed = {
      {1, 1, 1, 0, false},     {3, 5, 0, 1, false},      {3, 5, 0, 0, true},
      {8, 24, 192, 0, false},  {9, 25, 193, 1, true},    {193, 1009, 7, 0, false},
      {7, 1030, 390, 3, true}, {385, 23, 200, 0, false}, {2, 100, 100, 0, false},
      {0, 4, 4, 0, false},     {4, 0, 4, 0, false}};
  for (GemmTarget target : SupportedGemmTargets()) {
    for (const Problem& problem : fixed) CheckAgainstLoop(target, problem, rng);
    for (int trial = 0; trial < 60; ++trial) {
      CheckAgainstLoop(target,
                       {rng.Between(1, 40), rng.Between(1, 70), rng.Between(1, 50),
                        rng.Between(0, 3), rng.Flip()},
                       rng);
    }
  }
}

TEST(GemmTest, NanAndInfinityStayInTheirRowsAndColumns) {
  for (GemmTarget target : SupportedGemmTargets()) {
    std::vector<double> a(5 * 3, 1.0), b(3 * 7, 1.0), c(5 * 7, 0.0);
    a[4 * 3 + 1] = std::nan("");
    b[2 * 7 + 6] = INFINITY;
    GemmF64On(target, 5, 7, 3, a.data(), 3, b.data(), 7, c.data(), 7, false);
    for (size_t i = 0; i < 5; ++i) {
      for (size_t j = 0; j < 7; ++j) {
        if (i == 4) {
          EXPECT_TRUE(std::isnan(c[i * 7 + j]));
        } else {
          EXPECT_EQ(c[i * 7 + j], j == 6 ? INFINITY : 3.0);
        }
      }
    }
  }
}

}  // namespace
}  // namespace mendel
