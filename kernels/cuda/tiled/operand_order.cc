#include "kernels/cuda/tiled/operand_order.h"

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "kernels/cuda/cublaslt/strided_value.h"

namespace mendel::cuda {

bool FollowsLastAxis(const Graph& graph, ValueId value, const std::set<int32_t>& fused) {
  std::vector<bool> stored(graph.nodes().size(), true);
  for (const int32_t id : fused) stored[static_cast<size_t>(id)] = false;
  const StridedValue read = WaysToRead(graph, value, stored).front();
  const size_t rank = read.shape.size();
  if (rank < 2 || read.shape[rank - 2] == 1) return true;
  return read.shape[rank - 1] > 1 && std::abs(read.strides[rank - 1]) <= std::abs(read.strides[rank - 2]);
}

int64_t WidestElement(const Graph& graph, const std::set<int32_t>& fused) {
  int64_t widest = 1;
  for (const int32_t id : fused) {
    for (const TensorType& type : graph.InputTypes(id)) widest = std::max(widest, DTypeSize(type.dtype));
    for (const TensorType& type : graph.node(id).outputs) widest = std::max(widest, DTypeSize(type.dtype));
  }
  return widest;
}

}  // namespace mendel::cuda
