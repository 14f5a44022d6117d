// A partition assigns the nodes of a graph to what computes them on the device: constants, emitted
// corrections, library calls, and groups for the rest.
#ifndef MENDEL_KERNELS_CUDA_BACKEND_PARTITION_H_
#define MENDEL_KERNELS_CUDA_BACKEND_PARTITION_H_

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "graph/graph.h"
#include "kernels/cuda/backend/library_groups.h"
#include "kernels/cuda/backend/memory_formats.h"
#include "kernels/cuda/emit/correction_plan.h"
#include "kernels/cuda/fusion/grouping.h"
#include "runtime/backend.h"

namespace mendel::cuda {

struct Partition {
  Graph graph;  ///< the given one, with conversions where calls have values in other forms
  std::vector<bool> constant;  ///< by node of `graph`: depends on no input
  CorrectionPlan plan;
  std::vector<bool> elsewhere;  ///< constants, and what corrections and calls compute, or nobody
  std::vector<LibraryGroup> calls;  ///< in the order of their results
  std::vector<NodeOrigin> origins;  ///< by node of `graph`; empty: each is its own
  /// Nodes of the given graph whose kernels may be fused horizontally with others.
  std::set<int32_t> horizontal_fusion = {};

  NodeOrigin OriginOf(int32_t id) const {
    return origins.empty() ? NodeOrigin{id} : origins[static_cast<size_t>(id)];
  }
  /// The groups that kernels compute, in the order of their launches. Unimplemented names the node
  /// that no kernel computes.
  absl::StatusOr<std::vector<FusionGroup>> Groups() const;
};

/// Partitions the graph, with calls of `libraries`, or kernels that may be fused horizontally
/// (horizontal_fusion.h), for the nodes that `algorithms` names. InvalidArgument names the node and
/// an algorithm that no library has, or that cannot compute the node. `engines` is as in
/// FindLibraryGroups.
absl::StatusOr<Partition> PartitionOf(const Graph& graph, std::map<int32_t, std::string> algorithms,
                                      Numerics numerics,
                                      std::span<const CallLibrary* const> libraries,
                                      const EnginesByNode& engines = {});

/// OK where all engines were made for `device`, else InvalidArgument with the node and both
/// devices.
absl::Status CheckDevice(const EnginesByNode& engines, const std::string& device);

/// The engines of the calls' algorithms, by node of the given graph, made for `device`.
EnginesByNode EnginesOf(const Partition& partition, const std::string& device);

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_BACKEND_PARTITION_H_
