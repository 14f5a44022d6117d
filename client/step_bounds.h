// Steps beside what the device's rates allow (the roofline model: Williams, Waterman and Patterson
// 2009).
#ifndef MENDEL_CLIENT_STEP_BOUNDS_H_
#define MENDEL_CLIENT_STEP_BOUNDS_H_

#include <span>
#include <string_view>
#include <vector>

#include "graph/device_rates.h"
#include "graph/graph.h"
#include "runtime/backend.h"

namespace mendel {

struct StepBound {
  double seconds = 0;      ///< a constant a step included
  std::string_view limit;  ///< "arithmetic" or "memory", whichever takes longer
  /// A step that takes more than four times as long runs below a quarter of its bound.
  bool IsMissedBy(double measured) const { return measured > 4 * seconds; }
};

/// The bounds of steps that compute nodes of `graph` on `threads` cores of `rates`: the arithmetic
/// of the nodes, and what the step reads from other steps and leaves to them. Conversions of
/// layouts have no nodes, and bound 0.
std::vector<StepBound> BoundsOf(const Graph& graph, std::span<const Step> steps,
                                const DeviceRates& rates, int threads);

}  // namespace mendel

#endif  // MENDEL_CLIENT_STEP_BOUNDS_H_
