// The operators that a tiled kernel computes together: one or two products, what is read on the way
// to them, and what follows.
#ifndef MENDEL_KERNELS_CUDA_TILED_CHAIN_H_
#define MENDEL_KERNELS_CUDA_TILED_CHAIN_H_

#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "graph/graph.h"
#include "kernels/cuda/backend/library_groups.h"
#include "kernels/cuda/tiled/candidate.h"

namespace mendel::cuda {

struct TiledChain {
  std::vector<int32_t> products;  ///< the one whose algorithm it is first
  int32_t row = -1;               ///< the row operator that makes the left side; -1: none
  ValueId result;
  std::set<int32_t> nodes;  ///< what the kernel computes for all that read it
  std::set<int32_t>
      fused;  ///< the same, and views that others read, too: the kernel reads through them
};

/// The chain of this kind around node `product`; nullopt where the operator is no product
/// (OperatorText::product), its tensors are empty, or there is no such chain.
///
/// Before a product: nodes of one input that only move elements, and elementwise ones as large as
/// the product's operand that nothing else reads; before convolutions, whose operands are read once
/// a tap, only the former. After it: elementwise operators of the result's shape whose other
/// operands are there before the product (GroupingScope::IsThereBefore), as many as end in one
/// value. kPair: another product of the same left side and the same types, later in the graph,
/// joined with the first by such operators. kRows: a row operator over the last axis of the left
/// side, elementwise operators between them allowed.
std::optional<TiledChain> MatchTiledChain(const GroupingScope& scope, int32_t product,
                                          TiledFusion fusion);

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_TILED_CHAIN_H_
