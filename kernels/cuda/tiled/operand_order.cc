#include "kernels/cuda/tiled/operand_order.h"

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "kernels/cuda/cublaslt/strided_value.h"
#include "kernels/cuda/fusion/preamble.h"
#include "kernels/cuda/tiled/async_copies.h"
#include "kernels/cuda/tiled/tensor_cores.h"

namespace mendel::cuda {

bool FollowsLastAxis(const Graph& graph, ValueId value, const std::set<int32_t>& fused) {
  std::vector<bool> stored(graph.nodes().size(), true);
  for (const int32_t id : fused) stored[static_cast<size_t>(id)] = false;
  const StridedValue read = WaysToRead(graph, value, stored).front();
  const size_t rank = read.shape.size();
  if (rank < 2 || read.shape[rank - 2] == 1) return true;
  return read.shape[rank - 1] > 1 &&
         std::abs(read.strides[rank - 1]) <= std::abs(read.strides[rank - 2]);
}

namespace {

/// True if tiles contain the elements of `value` as they are stored.
bool IsStoredAsMultiplied(DType dtype, const TensorCores* cores) {
  return cores == nullptr ? StoredName(dtype) == RealName(dtype) : dtype == cores->stored;
}

/// True if 16 bytes of memory are 16 bytes of a tile. Threads that multiply on their own read what
/// lies across.
bool LiesSideBySide(bool by_depth, const TensorCores* cores) {
  return cores == nullptr ? !by_depth : (by_depth || cores->word_products == 1);
}

}  // namespace

OperandOrder OrderOf(const Graph& graph, const TiledChain& chain, const TiledCandidate& candidate,
                     const ProductExtents& extents, ValueId value, bool is_left) {
  const Tile& tile = candidate.tile;
  const int64_t run = is_left ? extents.left_run : extents.right_run;
  const bool last_axis_first = FollowsLastAxis(graph, value, chain.fused);
  OperandOrder order;
  order.by_depth = is_left == last_axis_first && run > 1;
  const int along = order.by_depth ? tile.depth : is_left ? tile.rows : tile.columns;
  const auto in_lanes = [&](int64_t lanes) {
    return last_axis_first && run % lanes == 0 && along % lanes == 0;
  };
  if (const int64_t lanes = 16 / WidestElement(graph, chain.fused); in_lanes(lanes))
    order.lanes = static_cast<int>(lanes);
  if (!candidate.asynchronous || chain.fused.count(value.node) > 0) return order;
  const TensorCores* const cores =
      candidate.tensor_cores.has_value() ? FindTensorCores(*candidate.tensor_cores) : nullptr;
  const DType dtype = graph.type(value).dtype;
  const int64_t lanes = kAsyncBytes / DTypeSize(dtype);
  order.copied = IsStoredAsMultiplied(dtype, cores) && LiesSideBySide(order.by_depth, cores) &&
                 in_lanes(lanes);
  if (order.copied) order.lanes = static_cast<int>(lanes);
  return order;
}

bool CopiesAny(const Graph& graph, const TiledChain& chain, const TiledCandidate& candidate,
               const ProductExtents& extents) {
  const ProductText& text = FindOperatorText(graph.node(chain.products[0]).op->name)->product;
  const auto copied = [&](int32_t product, bool is_left) {
    const ValueId value = graph.node(product).inputs[is_left ? text.left : text.right];
    return OrderOf(graph, chain, candidate, extents, value, is_left).copied;
  };
  return copied(chain.products[0], true) ||
         std::any_of(chain.products.begin(), chain.products.end(),
                     [&](int32_t product) { return copied(product, false); });
}

int64_t WidestElement(const Graph& graph, const std::set<int32_t>& fused) {
  int64_t widest = 1;
  for (const int32_t id : fused) {
    for (const TensorType& type : graph.InputTypes(id))
      widest = std::max(widest, DTypeSize(type.dtype));
    for (const TensorType& type : graph.node(id).outputs)
      widest = std::max(widest, DTypeSize(type.dtype));
  }
  return widest;
}

}  // namespace mendel::cuda
