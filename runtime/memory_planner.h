// Static memory planning: where each buffer of a program lies in one arena, given when it is alive.
#ifndef MENDEL_RUNTIME_MEMORY_PLANNER_H_
#define MENDEL_RUNTIME_MEMORY_PLANNER_H_

#include <cstdint>
#include <span>
#include <vector>

namespace mendel {

/// One buffer, alive from step `first` to step `last`, both included.
struct BufferLifetime {
  int64_t bytes = 0;
  int first = 0;
  int last = 0;
};

struct MemoryPlan {
  std::vector<int64_t> offsets;  ///< one a buffer, multiples of the alignment
  int64_t arena_bytes = 0;
  /// Most bytes alive at one step, each buffer rounded up to the alignment: no plan needs less.
  int64_t bound_bytes = 0;
};

/// Offsets such that buffers alive at a common step do not overlap: one after the other into the
/// tightest gap that is free over its whole life (greedy by size, Pisarchyk and Lee 2020), in
/// several orders - the largest first, the longest-lived first, those of the fullest steps first -
/// of which the smallest arena is taken. Where more than four million pairs are alive together, the
/// buffers are placed step by step instead. Deterministic. CHECK-fails on first > last, negative
/// sizes or an alignment that is no power of two.
MemoryPlan PlanMemory(std::span<const BufferLifetime> buffers, int64_t alignment = 64);

}  // namespace mendel

#endif  // MENDEL_RUNTIME_MEMORY_PLANNER_H_
