#include "runtime/memory_planner.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "base/check.h"
#include "base/work.h"

namespace mendel {
namespace {

/// Pairs of buffers alive together that are looked at in one order; beyond, buffers are placed step
/// by step.
constexpr int64_t kMostPairs = int64_t{1} << 22;

/// Buffers by the steps at which they are alive: a segment tree over the steps at which some begin.
class AliveIndex {
 public:
  explicit AliveIndex(std::span<const BufferLifetime> buffers) : buffers_(buffers) {
    for (const BufferLifetime& buffer : buffers) steps_.push_back(buffer.first);
    std::sort(steps_.begin(), steps_.end());
    steps_.erase(std::unique(steps_.begin(), steps_.end()), steps_.end());
    over_.resize(2 * steps_.size());
    at_.resize(steps_.size());
  }

  void Add(size_t k) {
    const size_t first = Begin(k);
    at_[first].push_back(k);
    size_t low = first + steps_.size(), high = End(k) + steps_.size();
    for (; low < high; low /= 2, high /= 2) {
      if (low % 2 == 1) over_[low++].push_back(k);
      if (high % 2 == 1) over_[--high].push_back(k);
    }
  }

  /// Lists the added buffers that are alive together with `k`, each once.
  std::vector<size_t> AliveWith(size_t k) const {
    std::vector<size_t> alive;
    const auto add = [&](const std::vector<size_t>& some) {
      alive.insert(alive.end(), some.begin(), some.end());
    };
    for (size_t node = Begin(k) + steps_.size(); node > 0; node /= 2) add(over_[node]);
    for (size_t step = Begin(k) + 1; step < End(k); ++step) add(at_[step]);
    return alive;
  }

 private:
  size_t Begin(size_t k) const { return Rank(buffers_[k].first); }
  size_t End(size_t k) const { return Rank(buffers_[k].last + 1); }
  size_t Rank(int step) const {
    return static_cast<size_t>(std::lower_bound(steps_.begin(), steps_.end(), step) -
                               steps_.begin());
  }

  std::span<const BufferLifetime> buffers_;
  std::vector<int> steps_;
  std::vector<std::vector<size_t>> over_, at_;
};

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
  AliveIndex placed(buffers);
  for (const size_t k : order) {
    const int64_t bytes = Aligned(buffers[k].bytes, alignment);
    std::vector<std::pair<int64_t, int64_t>> taken;
    for (const size_t other : placed.AliveWith(k)) {
      taken.emplace_back(plan.offsets[other],
                         plan.offsets[other] + Aligned(buffers[other].bytes, alignment));
    }
    CountWork(static_cast<int64_t>(taken.size()) + 1);
    std::sort(taken.begin(), taken.end());
    plan.offsets[k] = TightestGap(taken, bytes);
    plan.arena_bytes = std::max(plan.arena_bytes, plan.offsets[k] + bytes);
    placed.Add(k);
  }
  return plan;
}

/// Free ranges of an arena that grows at its end.
class FreeRanges {
 public:
  int64_t Take(int64_t bytes) {
    const auto fits = by_size_.lower_bound({bytes, 0});
    if (fits == by_size_.end()) return std::exchange(end_, end_ + bytes);
    const auto [size, begin] = *fits;
    Erase(begin, size);
    if (size > bytes) Insert(begin + bytes, size - bytes);
    return begin;
  }
  void Give(int64_t begin, int64_t bytes) {
    const auto next = by_begin_.lower_bound(begin);
    if (next != by_begin_.end() && next->first == begin + bytes) {
      const auto [after, size] = *next;
      Erase(after, size);
      bytes += size;
    }
    const auto behind = by_begin_.lower_bound(begin);
    if (behind != by_begin_.begin()) {
      const auto [before, size] = *std::prev(behind);
      if (before + size == begin) {
        Erase(before, size);
        begin = before;
        bytes += size;
      }
    }
    Insert(begin, bytes);
  }
  int64_t end() const { return end_; }

 private:
  void Insert(int64_t begin, int64_t bytes) {
    by_begin_.emplace(begin, bytes);
    by_size_.emplace(bytes, begin);
  }
  void Erase(int64_t begin, int64_t bytes) {
    by_begin_.erase(begin);
    by_size_.erase({bytes, begin});
  }

  std::map<int64_t, int64_t> by_begin_;
  std::set<std::pair<int64_t, int64_t>> by_size_;
  int64_t end_ = 0;
};

/// Places the buffers in the order in which they begin, each in the smallest free range.
MemoryPlan PlaceByStep(std::span<const BufferLifetime> buffers, int64_t alignment) {
  MemoryPlan plan;
  plan.offsets.assign(buffers.size(), 0);
  std::vector<size_t> order(buffers.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return buffers[a].first < buffers[b].first; });
  FreeRanges free;
  std::set<std::pair<int, size_t>> alive;  // by last step
  for (const size_t k : order) {
    while (!alive.empty() && alive.begin()->first < buffers[k].first) {
      const size_t over = alive.begin()->second;
      if (buffers[over].bytes > 0)
        free.Give(plan.offsets[over], Aligned(buffers[over].bytes, alignment));
      alive.erase(alive.begin());
    }
    if (buffers[k].bytes > 0) plan.offsets[k] = free.Take(Aligned(buffers[k].bytes, alignment));
    alive.emplace(buffers[k].last, k);
  }
  CountWork(static_cast<int64_t>(buffers.size()));
  plan.arena_bytes = free.end();
  return plan;
}

/// Pairs of buffers that are alive together, each counted at the later begin.
int64_t PairsAlive(std::span<const BufferLifetime> buffers) {
  std::vector<int> begins, ends;
  for (const BufferLifetime& buffer : buffers) {
    begins.push_back(buffer.first);
    ends.push_back(buffer.last);
  }
  std::sort(begins.begin(), begins.end());
  std::sort(ends.begin(), ends.end());
  int64_t pairs = 0;
  for (size_t begun = 0, ended = 0; begun < begins.size(); ++begun) {
    while (ends[ended] < begins[begun]) ++ended;
    pairs += static_cast<int64_t>(begun - ended);
  }
  return pairs;
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
  if (PairsAlive(buffers) > kMostPairs) {
    best = PlaceByStep(buffers, alignment);
    best.bound_bytes = bound;
    return best;
  }
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
