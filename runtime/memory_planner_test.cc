#include "runtime/memory_planner.h"

#include <algorithm>

#include "base/random.h"
#include "base/work.h"
#include "gtest/gtest.h"

namespace mendel {
namespace {

TEST(MemoryPlanner, ReusesWhatIsDead) {
  const std::vector<BufferLifetime> chain = {{100, 0, 1}, {100, 1, 2}, {100, 2, 3}, {100, 3, 4}};
  EXPECT_EQ(PlanMemory(chain).arena_bytes, 256);
}

TEST(MemoryPlanner, FillsTheTightestGap) {
  const std::vector<BufferLifetime> buffers = {{640, 0, 9}, {320, 0, 1}, {128, 0, 9}, {256, 2, 3}};
  const MemoryPlan plan = PlanMemory(buffers);
  EXPECT_EQ(plan.arena_bytes, 640 + 320 + 128);
  EXPECT_EQ(plan.offsets[3], plan.offsets[1]);
}

TEST(MemoryPlanner, TriesOtherOrdersThanTheLargestFirst) {
  // With the largest first these take a third more.
  const std::vector<BufferLifetime> by_life = {{192, 0, 0}, {192, 4, 5}, {192, 0, 2}, {192, 2, 4}};
  const std::vector<BufferLifetime> by_fullness = {
      {192, 5, 8}, {128, 3, 4}, {128, 2, 4}, {192, 4, 5}, {192, 2, 3}};
  EXPECT_EQ(PlanMemory(by_life).arena_bytes, 384);
  EXPECT_EQ(PlanMemory(by_fullness).arena_bytes, 448);
  EXPECT_EQ(PlanMemory(by_fullness).bound_bytes, 448);
}

TEST(MemoryPlanner, NothingAndEmptyBuffers) {
  EXPECT_EQ(PlanMemory({}).arena_bytes, 0);
  const std::vector<BufferLifetime> empty = {{0, 0, 5}, {0, 0, 5}};
  EXPECT_EQ(PlanMemory(empty).arena_bytes, 0);
}

int64_t WorkOf(const std::vector<BufferLifetime>& buffers) {
  const int64_t before = WorkDone();
  const MemoryPlan plan = PlanMemory(buffers);
  EXPECT_GE(plan.arena_bytes, plan.bound_bytes);
  return WorkDone() - before;
}

TEST(MemoryPlanner, WorkIsNearlyLinear) {
  for (int size = 1 << 12; size <= 1 << 16; size *= 2) {
    std::vector<BufferLifetime> chain, star;
    for (int k = 0; k < size; ++k) {
      chain.push_back({64 + k % 7 * 64, k, k + 1});
      star.push_back({64 + k % 7 * 64, k, size});
    }
    EXPECT_LE(WorkOf(chain), 12 * size);
    EXPECT_LE(WorkOf(star), 12 * int64_t{size} + (int64_t{3} << 22)) << size;
  }
}

TEST(MemoryPlanner, PlacesManyBuffersStepByStepWithoutOverlap) {
  Rng rng(7);
  std::vector<BufferLifetime> buffers(12000);
  for (BufferLifetime& buffer : buffers) {
    buffer.bytes = rng.Between(0, 500);
    buffer.first = static_cast<int>(rng.Between(0, 3000));
    buffer.last = buffer.first + static_cast<int>(rng.Between(0, 2000));
  }
  const MemoryPlan plan = PlanMemory(buffers);
  for (int step = 0; step <= 5000; step += 250) {
    std::vector<std::pair<int64_t, int64_t>> taken;
    for (size_t k = 0; k < buffers.size(); ++k) {
      if (buffers[k].first <= step && step <= buffers[k].last && buffers[k].bytes > 0)
        taken.emplace_back(plan.offsets[k], plan.offsets[k] + buffers[k].bytes);
    }
    std::sort(taken.begin(), taken.end());
    for (size_t k = 1; k < taken.size(); ++k) ASSERT_LE(taken[k - 1].second, taken[k].first);
  }
}

TEST(MemoryPlanner, RandomPlansNeverOverlap) {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Rng rng(seed);
    std::vector<BufferLifetime> buffers(static_cast<size_t>(rng.Between(1, 60)));
    int64_t largest = 0;
    int64_t sum = 0;
    for (BufferLifetime& buffer : buffers) {
      buffer.bytes = rng.Between(0, 5000);
      buffer.first = static_cast<int>(rng.Between(0, 40));
      buffer.last = buffer.first + static_cast<int>(rng.Between(0, 12));
      largest = std::max(largest, buffer.bytes);
      sum += (buffer.bytes + 63) / 64 * 64;
    }
    const MemoryPlan plan = PlanMemory(buffers);
    ASSERT_GE(plan.arena_bytes, largest);
    ASSERT_LE(plan.arena_bytes, sum);
    int64_t fullest = 0;
    for (int step = 0; step <= 52; ++step) {
      int64_t alive = 0;
      for (const BufferLifetime& buffer : buffers) {
        if (buffer.first <= step && step <= buffer.last) alive += (buffer.bytes + 63) / 64 * 64;
      }
      fullest = std::max(fullest, alive);
    }
    ASSERT_EQ(plan.bound_bytes, fullest);
    ASSERT_GE(plan.arena_bytes, fullest);
    for (size_t a = 0; a < buffers.size(); ++a) {
      ASSERT_EQ(plan.offsets[a] % 64, 0);
      ASSERT_LE(plan.offsets[a] + buffers[a].bytes, plan.arena_bytes);
      for (size_t b = 0; b < a; ++b) {
        const bool together =
            buffers[a].first <= buffers[b].last && buffers[b].first <= buffers[a].last;
        const bool apart = plan.offsets[a] + buffers[a].bytes <= plan.offsets[b] ||
                           plan.offsets[b] + buffers[b].bytes <= plan.offsets[a];
        ASSERT_TRUE(!together || apart || buffers[a].bytes == 0 || buffers[b].bytes == 0)
            << a << " and " << b;
      }
    }
  }
}

}  // namespace
}  // namespace mendel
