// Counted work: steps of loops whose number must stay nearly linear in the size of a graph.
//
// Tests compare the counts of graphs of doubling size, so that they do not depend on a clock.
#ifndef MENDEL_BASE_WORK_H_
#define MENDEL_BASE_WORK_H_

#include <cstdint>

namespace mendel {

/// Steps counted on this thread so far.
inline int64_t& WorkDone() {
  thread_local int64_t steps = 0;
  return steps;
}
inline void CountWork(int64_t steps = 1) { WorkDone() += steps; }

}  // namespace mendel

#endif  // MENDEL_BASE_WORK_H_
