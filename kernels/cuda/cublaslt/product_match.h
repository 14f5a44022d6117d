// A product match is a MatMul node with neighbors that cuBLASLt computes in one call.
#ifndef MENDEL_KERNELS_CUDA_CUBLASLT_PRODUCT_MATCH_H_
#define MENDEL_KERNELS_CUDA_CUBLASLT_PRODUCT_MATCH_H_

#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "graph/graph.h"
#include "kernels/cuda/backend/library_groups.h"
#include "kernels/cuda/cublaslt/matmul.h"
#include "runtime/backend.h"

namespace mendel::cuda {

struct ProductMatch {
  LtProduct product;
  ValueId result;
  std::set<int32_t>
      nodes;  ///< the MatMul, its epilogue, and movers before it that nothing else reads
  /// The residual and the bias where the product has them.
  ValueId left, right, residual, bias;
};

/// The rounding of the values that a product of f32 reads and writes.
struct ProductRounding {
  DType operands;     ///< both, to this format
  bool kept = false;  ///< residual, bias and result are in the format, too
};

/// The ways to compute the MatMul `node`, with most of its epilogue first and the product alone
/// last; empty for other operators, other dtypes than f32, f16 and bf16, empty tensors, extents
/// beyond 32 bits and batches that one stride an operand does not express.
///
/// An epilogue is any order of at most one addition of a vector along the columns and one of a
/// tensor of the result's shape, each of what is there before the product
/// (GroupingScope::IsThereBefore), then at most one of Relu and Gelu by tanh. Gelu only in f16 and
/// bf16, since cuBLASLt does not say how exact its tanh is; Relu not under `strict`, since
/// cuBLASLt's makes 0 of NaN, which Mendel's keeps. Operands are read in place through Transpose,
/// Reshape and Expand where strides express it.
///
/// `rounding`: of a product of f32, which then reads only through views of its own; empty for other
/// dtypes. The call does not add kept values that have numbers beyond the format
/// (ExceedsByConstants).
std::vector<ProductMatch> MatchProduct(const GroupingScope& scope, int32_t node, Numerics numerics,
                                       std::optional<ProductRounding> rounding = std::nullopt);

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_CUBLASLT_PRODUCT_MATCH_H_
