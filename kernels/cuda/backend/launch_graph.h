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

/// Launches in an order that computes the graph, and whose memory is not a value's own.
struct LaunchGraph {
  std::vector<LaunchNode> launches;
  std::map<ValueId, ValueId> homes;    ///< of results that overwrite what they correct
  std::map<ValueId, int64_t> scratch;  ///< bytes of buffers that the graph does not have

  /// The value in whose memory `value` lies: its own, or what a correction has written over.
  ValueId Home(ValueId value) const {
    const auto home = homes.find(value);
    return home == homes.end() ? value : home->second;
  }
  ValueUse UseOf(const LaunchNode& launch, const std::vector<bool>& constant) const;
};

/// The calls, corrections and kernels of the partition's graph, and kernels side by side where that
/// was requested. Unimplemented names the node that no kernel computes.
absl::StatusOr<LaunchGraph> BuildLaunchGraph(const Partition& partition, FoldedValues& folded);

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_BACKEND_LAUNCH_GRAPH_H_
