// The loops that all reductions have: results in strips side by side, the terms of each at the same
// offsets.
#ifndef MENDEL_KERNELS_CPU_KERNELS_REDUCE_LOOPS_H_
#define MENDEL_KERNELS_CPU_KERNELS_REDUCE_LOOPS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "kernels/cpu/kernels/reduce.h"
#include "kernels/cpu/kernels/typed.h"
#include "kernels/cpu/threads.h"

namespace mendel::cpu {

struct ReduceLoops {
  explicit ReduceLoops(ReduceProblem problem) : p(std::move(problem)) {
    terms.resize(static_cast<size_t>(NumElements(p.reduced)));
    for (size_t t = 0; t < terms.size(); ++t)
      terms[t] = OffsetOf(p.reduced, p.reduced_from, static_cast<int64_t>(t));
    contiguous = !terms.empty();
    for (size_t t = 0; t < terms.size(); ++t)
      contiguous = contiguous && terms[t] == static_cast<int64_t>(t);
    if (p.kept.empty()) {
      p.kept = {1};
      p.kept_from = p.kept_to = {0};
    }
  }

  /// Calls side_by_side(from, to, count) for up to `kSide` results whose terms lie side by side,
  /// else one(from), a result each. `grain` terms justify a thread.
  template <int64_t kSide, class SideBySide, class One>
  void Run(const Bindings& bindings, int64_t grain, const SideBySide& side_by_side,
           const One& one) const {
    const float* from = bindings.At<float>(p.from);
    float* to = bindings.At<float>(p.to);
    const int64_t row = p.kept.back();
    const int64_t strips = (row + kSide - 1) / kSide;
    const int64_t work =
        std::max<int64_t>(1, static_cast<int64_t>(terms.size()) * std::min(row, kSide));
    ParallelRange(NumElements(p.kept) / row * strips, std::max<int64_t>(1, grain / work),
                  [&](int64_t begin, int64_t end) {
                    for (int64_t job = begin; job < end; ++job) {
                      const int64_t column = job % strips * kSide;
                      const int64_t first = job / strips * row + column;
                      const int64_t count = std::min(kSide, row - column);
                      const float* source = from + OffsetOf(p.kept, p.kept_from, first);
                      float* target = to + OffsetOf(p.kept, p.kept_to, first);
                      if (p.kept_from.back() == 1 && count >= 4) {
                        side_by_side(source, target, count);
                        continue;
                      }
                      for (int64_t i = 0; i < count; ++i)
                        target[i * p.kept_to.back()] = one(source + i * p.kept_from.back());
                    }
                  });
  }

  ReduceProblem p;
  std::vector<int64_t> terms;  ///< offsets from a result's first one
  bool contiguous = false;     ///< they are 0, 1, 2, ...
};

}  // namespace mendel::cpu

#endif  // MENDEL_KERNELS_CPU_KERNELS_REDUCE_LOOPS_H_
