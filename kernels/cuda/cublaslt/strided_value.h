// Values that are read in place through nodes that only move or repeat elements.
#ifndef MENDEL_KERNELS_CUDA_CUBLASLT_STRIDED_VALUE_H_
#define MENDEL_KERNELS_CUDA_CUBLASLT_STRIDED_VALUE_H_

#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "graph/graph.h"
#include "kernels/cuda/backend/library_groups.h"

namespace mendel::cuda {

/// A value as its reader sees it: element i is element sum(strides[d] * i[d]) of `source`, which
/// lies in memory row by row.
struct StridedValue {
  ValueId source;
  Shape shape;
  Ints strides;                  ///< in elements; 0 where elements repeat
  std::vector<int32_t> through;  ///< the nodes from `source` to the reader, the reader's first
};

/// The ways to read `value`. The first goes through as many of the Transpose, Reshape and Expand
/// nodes before it as strides express. The last reads `value` itself. Nodes in `constant` are
/// folded, so that their results are read as they are.
std::vector<StridedValue> WaysToRead(const Graph& graph, ValueId value,
                                     const std::vector<bool>& constant);
/// The same, but through no node that a group has claimed: what it reads may be stored nowhere.
std::vector<StridedValue> WaysToRead(const GroupingScope& scope, ValueId value);

/// True where nothing but `reader` reads any of the nodes, from it on.
bool AreOnlyFor(const GroupingScope& scope, const std::vector<int32_t>& through, int32_t reader);
/// Adds the nodes, from the reader on, that nothing but `nodes` reads.
void AddOwn(const GroupingScope& scope, const std::vector<int32_t>& through,
            std::set<int32_t>& nodes);

/// Strides of the same elements under another shape, as Reshape orders them; nullopt where no
/// strides express it.
std::optional<Ints> StridesReshaped(const Shape& shape, const Ints& strides, const Shape& to);

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_CUBLASLT_STRIDED_VALUE_H_
