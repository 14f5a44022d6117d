#include "runtime/memory_planner.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"

namespace mendel {
namespace {

bool AliveTogether(const BufferLifetime& a, const BufferLifetime& b) { return a.first <= b.last && b.first <= a.last; }

/// Start of the smallest gap of at least `bytes` between `taken` ranges (ascending by start), or their end.
int64_t TightestGap(std::span<const std::pair<int64_t, int64_t>> taken, int64_t bytes) {
  int64_t best = -1;
  int64_t best_size = 0;
  int64_t end = 0;
  for (const auto& [begin, next] : taken) {
    const int64_t gap = begin - end;
    if (gap >= bytes && (best < 0 || gap < best_size)) {
      best = end;
      best_size = gap;
    }
    end = std::max(end, next);
  }
  return best >= 0 ? best : end;
}

}  // namespace

MemoryPlan PlanMemory(std::span<const BufferLifetime> buffers, int64_t alignment) {
  MENDEL_CHECK(alignment > 0 && (alignment & (alignment - 1)) == 0);
  std::vector<size_t> order(buffers.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return buffers[a].bytes > buffers[b].bytes; });
  MemoryPlan plan;
  plan.offsets.assign(buffers.size(), 0);
  std::vector<size_t> placed;  // ascending by offset
  for (const size_t k : order) {
    const BufferLifetime& buffer = buffers[k];
    MENDEL_CHECK(buffer.bytes >= 0 && buffer.first <= buffer.last);
    const int64_t bytes = (buffer.bytes + alignment - 1) & ~(alignment - 1);
    std::vector<std::pair<int64_t, int64_t>> taken;
    for (const size_t other : placed) {
      if (!AliveTogether(buffer, buffers[other])) continue;
      const int64_t size = (buffers[other].bytes + alignment - 1) & ~(alignment - 1);
      taken.emplace_back(plan.offsets[other], plan.offsets[other] + size);
    }
    plan.offsets[k] = TightestGap(taken, bytes);
    plan.arena_bytes = std::max(plan.arena_bytes, plan.offsets[k] + bytes);
    const auto position =
        std::upper_bound(placed.begin(), placed.end(), k, [&](size_t a, size_t b) { return plan.offsets[a] < plan.offsets[b]; });
    placed.insert(position, k);
  }
  return plan;
}

}  // namespace mendel
