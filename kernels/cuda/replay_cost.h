// What a run of a plan costs besides its kernels.
#ifndef MENDEL_KERNELS_CUDA_REPLAY_COST_H_
#define MENDEL_KERNELS_CUDA_REPLAY_COST_H_

#include <string>

#include "absl/status/statusor.h"
#include "graph/graph.h"
#include "kernels/cuda/driver_table/driver.h"
#include "runtime/backend.h"

namespace mendel::cuda {

/// Seconds a run: medians over rounds.
struct ReplayCost {
  int runs = 0;        ///< a round
  double enqueue = 0;  ///< of the host's, until mendel_run_device has put the run onto its stream
  double wall = 0;     ///< back to back, from the first enqueue until the device has done the last
  double events = 0;   ///< between two events around the launches, which no copy and no host's time is in
};

/// "replay of WHAT: ...", a line of microseconds. What enqueueing costs beyond the kernels is hidden where the device is busy
/// longer than that; `wall` less `events` is what it is not, copies between the caller's memory and the plan's included.
std::string ReplayText(const std::string& what, const ReplayCost& cost);

/// Runs `executable`, a program of `graph` on the driver's device, `rounds` times `runs` times on a stream of its own with inputs
/// and outputs in device memory, which holds zeros. Fewer, but a round of one run at least, where they would take more than
/// `seconds`. The driver's first error.
absl::StatusOr<ReplayCost> MeasureReplay(const Driver& driver, Executable& executable, const Graph& graph, int runs, int rounds,
                                         double seconds);

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_REPLAY_COST_H_
