// A fusion group is the set of nodes that one kernel computes.
#ifndef MENDEL_KERNELS_CUDA_FUSION_GROUPING_H_
#define MENDEL_KERNELS_CUDA_FUSION_GROUPING_H_

#include <cstdint>
#include <set>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/graph.h"

namespace mendel::cuda {

/// A fusion group is one launch: it computes `nodes` and stores the value `result`.
struct FusionGroup {
  ValueId result;
  std::set<int32_t> nodes;  ///< with result.node; a view may belong to several groups
  int32_t row = -1;         ///< the node of a row operator in the group
};

/// Constraints that kernels outside of all groups put on the groups.
struct OutsideGroups {
  std::vector<bool> unused;  ///< by node: no group reads its values, because such kernels compute
                             ///< its users. Empty: none
  std::set<ValueId>
      stored;  ///< values that such kernels read from memory, whatever reads them in the graph
};

/// Groups for everything that `graph` computes from its inputs, in the order of their launches.
/// `elsewhere` is true for nodes that no group computes: they depend on no input, or another
/// kernel computes them and reads their inputs from memory.
///
/// A chain of elementwise operators, broadcasts and views is one group. An operator that sums (a
/// convolution, a reduction, a softmax) takes the elementwise operators after it as its epilogue.
/// A row operator also takes those before it. A pool or Resize between two Transposes takes both,
/// and the conversions of dtypes before them: it is computed in the memory order of its input and
/// its result. Nothing is computed twice but views, such conversions, and the elementwise part
/// before a row operator that is too long for registers. Unimplemented names the node that no
/// kernel computes.
absl::StatusOr<std::vector<FusionGroup>> GroupsOf(const Graph& graph,
                                                  const std::vector<bool>& elsewhere,
                                                  const OutsideGroups& outside = {});

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_FUSION_GROUPING_H_
