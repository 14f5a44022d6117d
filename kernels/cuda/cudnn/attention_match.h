// An attention match is the nodes of a graph that cuDNN's attention computes in one call.
#ifndef MENDEL_KERNELS_CUDA_CUDNN_ATTENTION_MATCH_H_
#define MENDEL_KERNELS_CUDA_CUDNN_ATTENTION_MATCH_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "kernels/cuda/backend/library_groups.h"
#include "kernels/cuda/cudnn/attention.h"

namespace mendel::cuda {

struct AttentionMatch {
  CudnnAttention attention;
  LibraryGroup group;  ///< without its call; operands: q, k, the mask, v
};

/// The matches of the MatMul `node` that multiplies queries and keys, first with a Transpose of the
/// result, then without. Between the products stand at most one product or quotient with a stored
/// number, at most one addition of a stored mask that leaves each row a key, and Softmax over the
/// keys. Queries and keys may be scaled so, too, by 1/16 to 16 if they are rounded to f16. The
/// scale is positive. Operands of 2 to 4 dimensions are read through Transpose, Reshape and Expand
/// as far as strides express it (strided_value.h); a mask, which may be broadcast over all but the
/// keys, is read as it is. Batches are equal, and what is multiplied lies side by side; cuDNN
/// repeats no elements. Empty otherwise.
///
/// `rounded`: values are f32 and rounded to this format, result included; they are then read
/// through views of the match's own. A mask stays f32. Without it, values are f16 or bf16.
std::vector<AttentionMatch> MatchAttention(const GroupingScope& scope, int32_t node,
                                           std::optional<DType> rounded);

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_CUDNN_ATTENTION_MATCH_H_
