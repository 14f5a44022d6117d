// Two products, the second of what is made of the first: f(A x B) x D, or a convolution of a
// convolution.
#ifndef MENDEL_KERNELS_CUDA_TILED_PRODUCT_CHAIN_H_
#define MENDEL_KERNELS_CUDA_TILED_PRODUCT_CHAIN_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>

#include "graph/graph.h"
#include "kernels/cuda/backend/library_groups.h"
#include "kernels/cuda/tiled/chain.h"

namespace mendel::cuda {

struct ProductChain {
  /// The first product with what is before and after it. Its result is the value that a block keeps
  /// in shared memory.
  TiledChain first;
  /// The second one, likewise; its `row` is a row operator between the two, -1: none.
  TiledChain second;
  size_t operand = 0;            ///< of the second product: what is made of the first one's result
  std::set<int32_t> nodes = {};  ///< as in TiledChain, of both together
  std::set<int32_t> fused = {};

  int32_t product(int number) const { return (number == 0 ? first : second).products[0]; }
  ValueId kept() const { return first.result; }
};

/// The chain that begins with node `product`; nullopt where there is none.
///
/// The second product is a MatMul whose left side, or a Conv whose input, is made of the first
/// one's result and of nothing else that depends on it. After a matrix product that way leads
/// through elementwise operators and at most one row operator over the last axis (the softmax of an
/// attention, its scale and its mask); after a convolution, transposed or not, through elementwise
/// operators that are there before it. No value on the way has another reader, and both products
/// are summed in one type.
std::optional<ProductChain> MatchProductChain(const GroupingScope& scope, int32_t product);

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_TILED_PRODUCT_CHAIN_H_
