// Which nodes a kernel computes together.
#ifndef MENDEL_KERNELS_CUDA_FUSION_GROUPING_H_
#define MENDEL_KERNELS_CUDA_FUSION_GROUPING_H_

#include <cstdint>
#include <set>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/graph.h"

namespace mendel::cuda {

/// One launch: the value `result`, and the nodes that are computed where it is.
struct FusionGroup {
  ValueId result;
  std::set<int32_t> nodes;  ///< with result.node; a view may belong to several groups
  int32_t row = -1;         ///< the node of a row operator in the group
};

/// What kernels that are no groups change for them.
struct OutsideGroups {
  std::vector<bool> unused;  ///< by node: nobody reads its values, since such kernels compute what is made of them. Empty: none
  std::set<ValueId> stored;  ///< values that such kernels read from memory, whatever reads them in the graph
};

/// Groups for everything that `graph` computes from its inputs, in the order of their launches. `elsewhere` says for every node
/// that no group is to compute it: it depends on no input, or others compute it, which read its inputs from memory.
///
/// A chain of elementwise operators, broadcasts and views is one group. An operator that sums (a convolution, a reduction, a
/// softmax) takes the elementwise operators after it along, as its epilogue; a row operator also those before it. A pool or Resize
/// that a Transpose precedes and another one follows takes both along, with the conversions of dtypes before: it is computed in the
/// order in which its input and its result lie. Nothing is computed twice but views and such conversions, and the elementwise part
/// before a row operator, which its passes repeat.
/// Unimplemented names the node that no kernel computes.
absl::StatusOr<std::vector<FusionGroup>> GroupsOf(const Graph& graph, const std::vector<bool>& elsewhere,
                                                  const OutsideGroups& outside = {});

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_FUSION_GROUPING_H_
