// What Fill meanings share: loops over output ranges on several threads and division by known counts.
#ifndef MENDEL_GRAPH_FILL_H_
#define MENDEL_GRAPH_FILL_H_

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "base/parallel.h"
#include "graph/contraction.h"
#include "graph/meaning.h"

namespace mendel {

/// Elements that a thread should at least work on to be worth starting.
inline constexpr int64_t kElementsPerJob = 1 << 15;

/// Calls body(begin, end) for disjoint ranges that cover [0, count), in parallel; an item costs about `work` element visits.
/// Bodies may call oracles, but not Reader::Divide, which records zero denominators.
template <class S, class Body>
void ForRanges(int64_t count, int64_t work, const Body& body) {
  const int64_t grain = std::max<int64_t>(1, kElementsPerJob / std::max<int64_t>(1, work));
  const auto* context = ScalarScope<S>::Current();
  ParallelFor((count + grain - 1) / grain, [&](int64_t job) {
    const ScalarScope<S> scope(context);
    body(job * grain, std::min(count, (job + 1) * grain));
  });
}

/// ForRanges for bodies that divide: in GF(p) on this thread only.
template <class S, class Body>
void ForRangesDividing(int64_t count, int64_t work, const Body& body) {
  if constexpr (std::is_same_v<S, Fp>) {
    body(0, count);
  } else {
    ForRanges<S>(count, work, body);
  }
}

/// Division by an integer known beforehand: one inversion in GF(p), a true division in doubles.
template <class S>
class Divisor {
 public:
  Divisor(const Reader<S>& in, int64_t count) : count_(in.FromInteger(count)) {
    if constexpr (std::is_same_v<S, Fp>) inverse_ = in.Divide(in.FromInteger(1), count_);
  }
  S operator()(const S& value) const {
    if constexpr (std::is_same_v<S, Fp>) {
      return value * inverse_;
    } else {
      return count_ == S{} ? S{} : value / count_;
    }
  }

 private:
  S count_;
  S inverse_{};
};

}  // namespace mendel

#endif  // MENDEL_GRAPH_FILL_H_
