#include "base/parallel.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

#include "gtest/gtest.h"

namespace mendel {
namespace {

int runner_calls = 0;

/// Backwards, to show that the runner decides.
void Backwards(int64_t count, const std::function<void(int64_t)>& body) {
  ++runner_calls;
  while (count-- > 0) body(count);
}

TEST(ParallelFor, CallsEachBodyOnce) {
  std::vector<int> calls(1000, 0);
  ParallelFor(1000, [&](int64_t i) { ++calls[static_cast<size_t>(i)]; });
  EXPECT_EQ(std::count(calls.begin(), calls.end(), 1), 1000);
}

TEST(ParallelFor, GoesToTheRunnerWhileInScope) {
  const int before = Parallelism();
  SetParallelism(2);
  std::vector<int64_t> order;
  {
    const ParallelRunnerScope scope(&Backwards);
    // The inner calls run inline: only the outer one is the runner's.
    ParallelFor(
        3, [&](int64_t i) { ParallelFor(2, [&](int64_t k) { order.push_back(10 * i + k); }); });
    EXPECT_EQ(runner_calls, 1);
    {
      const ParallelRunnerScope none(nullptr);
      std::vector<int> calls(100, 0);
      ParallelFor(100, [&](int64_t i) { ++calls[static_cast<size_t>(i)]; });
      EXPECT_EQ(std::count(calls.begin(), calls.end(), 1), 100);
    }
    ParallelFor(2, [&](int64_t i) { order.push_back(i); });
  }
  EXPECT_EQ(runner_calls, 2);
  EXPECT_EQ(order, (std::vector<int64_t>{20, 21, 10, 11, 0, 1, 1, 0}));
  ParallelFor(2, [](int64_t) {});
  EXPECT_EQ(runner_calls, 2);
  SetParallelism(before);
}

}  // namespace
}  // namespace mendel
