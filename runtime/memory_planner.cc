#include "runtime/memory_planner.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <utility>

#include "base/check.h"

namespace mendel {
namespace {

bool AliveTogether(const BufferLifetime& a, const BufferLifetime& b) {
  return a.first <= b.last && b.first <= a.last;
}

/// Start of the smallest gap of at least `bytes` between `taken` ranges (ascending by start), or
/// their end.
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

int64_t Aligned(int64_t bytes, int64_t alignment) {
  return (bytes + alignment - 1) & ~(alignment - 1);
}

/// Bytes alive at each of the steps at which a buffer begins, by buffer. The fullest step is one of
/// them.
std::vector<int64_t> AliveAtBegin(std::span<const BufferLifetime> buffers, int64_t alignment) {
  std::vector<std::pair<int, int64_t>> changes;
  for (const BufferLifetime& buffer : buffers) {
    changes.emplace_back(buffer.first, Aligned(buffer.bytes, alignment));
    changes.emplace_back(buffer.last + 1, -Aligned(buffer.bytes, alignment));
  }
  std::sort(changes.begin(), changes.end());
  std::map<int, int64_t> alive;
  int64_t sum = 0;
  for (const auto& [step, bytes] : changes) alive[step] = sum += bytes;
  std::vector<int64_t> result;
  for (const BufferLifetime& buffer : buffers) result.push_back(alive[buffer.first]);
  return result;
}

/// Places the buffers in `order`.
MemoryPlan Place(std::span<const BufferLifetime> buffers, const std::vector<size_t>& order,
                 int64_t alignment) {
  MemoryPlan plan;
  plan.offsets.assign(buffers.size(), 0);
  std::vector<size_t> placed;  // ascending by offset
  for (const size_t k : order) {
    const BufferLifetime& buffer = buffers[k];
    const int64_t bytes = Aligned(buffer.bytes, alignment);
    std::vector<std::pair<int64_t, int64_t>> taken;
    for (const size_t other : placed) {
      if (!AliveTogether(buffer, buffers[other])) continue;
      taken.emplace_back(plan.offsets[other],
                         plan.offsets[other] + Aligned(buffers[other].bytes, alignment));
    }
    plan.offsets[k] = TightestGap(taken, bytes);
    plan.arena_bytes = std::max(plan.arena_bytes, plan.offsets[k] + bytes);
    const auto position =
        std::upper_bound(placed.begin(), placed.end(), k,
                         [&](size_t a, size_t b) { return plan.offsets[a] < plan.offsets[b]; });
    placed.insert(position, k);
  }
  return plan;
}

}  // namespace

MemoryPlan PlanMemory(std::span<const BufferLifetime> buffers, int64_t alignment) {
  MENDEL_CHECK(alignment > 0 && (alignment & (alignment - 1)) == 0);
  for (const BufferLifetime& buffer : buffers)
    MENDEL_CHECK(buffer.bytes >= 0 && buffer.first <= buffer.last);
  const std::vector<int64_t> alive = AliveAtBegin(buffers, alignment);
  const int64_t bound = alive.empty() ? 0 : *std::max_element(alive.begin(), alive.end());
  const auto life = [&](size_t k) { return int64_t{buffers[k].last} - buffers[k].first; };
  // The first order decides between buffers that the others see as equal.
  const std::function<int64_t(size_t)> keys[] = {[&](size_t k) { return buffers[k].bytes; }, life,
                                                 [&](size_t k) { return alive[k]; }};
  std::vector<size_t> order(buffers.size());
  std::iota(order.begin(), order.end(), size_t{0});
  MemoryPlan best;
  for (const auto& key : keys) {
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return key(a) > key(b); });
    MemoryPlan plan = Place(buffers, order, alignment);
    if (best.offsets.empty() || plan.arena_bytes < best.arena_bytes) best = std::move(plan);
    if (best.arena_bytes == bound) break;
  }
  best.bound_bytes = bound;
  return best;
}

}  // namespace mendel
