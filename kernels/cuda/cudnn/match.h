// A convolution match is a convolution of a graph, with the nodes after it that fit into cuDNN's
// epilogue.
#ifndef MENDEL_KERNELS_CUDA_CUDNN_MATCH_H_
#define MENDEL_KERNELS_CUDA_CUDNN_MATCH_H_

#include <cstdint>
#include <vector>

#include "kernels/cuda/backend/library_groups.h"
#include "kernels/cuda/cudnn/convolution.h"
#include "runtime/backend.h"

namespace mendel::cuda {

struct ConvolutionMatch {
  CudnnConvolution convolution;
  LibraryGroup group;            ///< without its call
  std::vector<int64_t> tensors;  ///< CudnnTensorId of the group's operands, then of its result
};

/// The matches of `node`, first with as many of the nodes after it as an epilogue may have, then
/// with one less, and so on; the last one is `node` alone. An epilogue adds a bias and another
/// value in either order, each there before the convolution (GroupingScope::IsThereBefore), then
/// applies Relu. Empty where it is no Conv or ConvTranspose of 1 to 3 dimensions in f32, f16 or
/// bf16 with elements. Values lie in the graph's own order, channels before positions, and in its
/// own dtype (SetForm).
///
/// `activations`: Sigmoid, its product with its own operand (Silu) and Gelu also end an epilogue.
///
/// Under `strict`, Relu only follows a ConvTranspose, whose epilogue is a native kernel: cuDNN's
/// Relu makes 0 of NaN, which Mendel's keeps.
std::vector<ConvolutionMatch> MatchConvolution(const GroupingScope& scope, int32_t node,
                                               Numerics numerics, bool activations = false);

/// True where the bias or the residual has numbers beyond `format` (ExceedsByConstants): rounded to
/// it, they would be infinite.
bool AddsBeyond(const Graph& graph, const ConvolutionMatch& match, DType format);

/// Puts x, w, the bias, the residual and the result into this form. A bias has no order of
/// positions.
void SetForm(ConvolutionMatch& match, const MemoryFormat& form);

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_CUDNN_MATCH_H_
