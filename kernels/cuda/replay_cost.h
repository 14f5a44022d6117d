// The replay cost is the time that a run of a plan takes besides its kernels.
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
  double enqueue = 0;  ///< host time until mendel_run_device has put the run onto its stream
  double wall = 0;     ///< back to back, from the first enqueue until the device has done the last
  /// Time between two events around the launches, without copies and without time of the host.
  double events = 0;
};

/// Formats one line of microseconds: "replay of WHAT: ...". The cost of enqueueing is hidden while
/// the device is busy. `wall` less `events` is the part that is not hidden, with the copies between
/// the caller's memory and the plan's.
std::string ReplayText(const std::string& what, const ReplayCost& cost);

/// Runs `executable`, a program of `graph` on the driver's device, `rounds` times `runs` times on a
/// stream of its own. Inputs and outputs are zeros in device memory. It makes fewer runs, but at
/// least one, if they would take more than `seconds`. Returns the driver's first error.
absl::StatusOr<ReplayCost> MeasureReplay(const Driver& driver, Executable& executable,
                                         const Graph& graph, int runs, int rounds, double seconds);

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_REPLAY_COST_H_
