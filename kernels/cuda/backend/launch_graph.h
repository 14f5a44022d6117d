// A graph as launches whose memory is not planned yet.
#ifndef MENDEL_KERNELS_CUDA_BACKEND_LAUNCH_GRAPH_H_
#define MENDEL_KERNELS_CUDA_BACKEND_LAUNCH_GRAPH_H_

#include <cstdint>
#include <map>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/graph.h"
#include "kernels/cuda/backend/folded_values.h"
#include "kernels/cuda/backend/launch_node.h"
#include "kernels/cuda/backend/partition.h"

namespace mendel::cuda {

/// Launches in execution order. `homes` and `scratch` say which results lie elsewhere than in a
/// buffer of their own.
struct LaunchGraph {
  std::vector<LaunchNode> launches;
  std::map<ValueId, ValueId> homes;    ///< results that overwrite what they correct
  std::map<ValueId, int64_t> scratch;  ///< bytes of buffers that are no values of the graph

  /// The value in whose memory `value` lies: its own, or what a correction has written over.
  ValueId Home(ValueId value) const {
    const auto home = homes.find(value);
    return home == homes.end() ? value : home->second;
  }
  ValueUse UseOf(const LaunchNode& launch, const std::vector<bool>& constant) const;
};

/// Makes the launches of the partition: calls, corrections and kernels, fused horizontally where
/// that was requested. Returns Unimplemented with the node that no kernel computes.
absl::StatusOr<LaunchGraph> BuildLaunchGraph(const Partition& partition, FoldedValues& folded);

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_BACKEND_LAUNCH_GRAPH_H_
