// The algorithm "beside" of small elementwise nodes: their kernel and others that need not wait for
// each other are one launch.
#ifndef MENDEL_KERNELS_CUDA_BACKEND_HORIZONTAL_FUSION_H_
#define MENDEL_KERNELS_CUDA_BACKEND_HORIZONTAL_FUSION_H_

#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "graph/graph.h"

namespace mendel::cuda {

// The algorithm's old name, which plans store. Version 0.2 names it "horizontal".
inline constexpr std::string_view kHorizontalFusion = "beside";

/// Takes the nodes with this algorithm out of `algorithms`. What other nodes' algorithms make of a
/// node decides whether it is the result of a kernel that may be fused horizontally with others;
/// where it is not, or has no company, it is computed as without the algorithm. InvalidArgument
/// names a node that never can be: it is not there, or its operator is not elementwise.
absl::StatusOr<std::set<int32_t>> TakeHorizontalFusion(const Graph& graph,
                                                       std::map<int32_t, std::string>& algorithms);

/// The nodes to offer it to: results of such kernels where another one neither depends on them nor
/// they on that, by the grouping that the backend makes where no other algorithm is chosen.
std::set<int32_t> HorizontalFusionNodes(const Graph& graph);

/// The same for who asks node by node: plans a graph once for all questions that follow each other.
/// Keeps the graph that was asked about last, and with it its weights. Thread-safe.
class HorizontalFusionOffers {
 public:
  bool Has(const Graph& graph, int32_t node) const;

 private:
  mutable std::mutex mutex_;
  mutable Graph last_;
  mutable std::set<int32_t> nodes_;
};

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_BACKEND_HORIZONTAL_FUSION_H_
