// Common parts of Fill meanings: loops over output ranges on several threads, operands as arrays
// and division by known counts.
#ifndef MENDEL_GRAPH_FILL_H_
#define MENDEL_GRAPH_FILL_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

#include "base/parallel.h"
#include "graph/contraction.h"
#include "graph/meaning.h"

namespace mendel {

/// The fewest elements for which a thread is worth starting.
inline constexpr int64_t kElementsPerJob = 1 << 15;

/// Calls body(begin, end) for disjoint ranges that cover [0, count), in parallel; an item costs
/// about `work` element visits.
template <class S, class Body>
void ForRanges(int64_t count, int64_t work, const Body& body) {
  const int64_t grain = std::max<int64_t>(1, kElementsPerJob / std::max<int64_t>(1, work));
  auto* const context = ScalarScope<S>::Current();
  ParallelFor((count + grain - 1) / grain, [&](int64_t job) {
    const ScalarScope<S> scope(context);
    body(job * grain, std::min(count, (job + 1) * grain));
  });
}

/// out[i] = element(i) for all positions of a tensor of this shape, row-major, in parallel.
template <class S, class Element>
void FillByPosition(const Shape& shape, std::span<S> out, const Element& element) {
  ForRanges<S>(static_cast<int64_t>(out.size()), 1, [&](int64_t begin, int64_t end) {
    std::array<int64_t, kMaxRank> storage{};
    const std::span<int64_t> index(storage.data(), shape.size());
    for (size_t d = shape.size(), rest = static_cast<size_t>(begin); rest != 0 && d-- > 0;
         rest /= static_cast<size_t>(shape[d])) {
      index[d] = static_cast<int64_t>(rest % static_cast<size_t>(shape[d]));
    }
    for (int64_t flat = begin; flat < end; ++flat) {
      out[static_cast<size_t>(flat)] = element(Index(index));
      NextIndex(shape, index);
    }
  });
}

/// All elements of input `input`, row-major. They are the operand's own or, where it has none of
/// this type, copies in `storage`.
template <class S>
const S* AllElements(const Reader<S>& in, int input, std::vector<S>& storage) {
  if (const S* scalars = in.operand(input).scalars; scalars != nullptr) return scalars;
  storage.resize(static_cast<size_t>(NumElements(in.shape(input))));
  for (size_t i = 0; i < storage.size(); ++i) storage[i] = in.Flat(input, static_cast<int64_t>(i));
  return storage.data();
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
