// Convolutions of a graph, with the nodes after them that fit into their epilogue, as cuDNN takes them.
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

/// `node` with as many of the nodes after it as an epilogue holds (the addition of a bias and of another value in either order,
/// each of what is there before the convolution, GroupingScope::IsThereBefore; then Relu), then with one less, and so on; the last
/// one is `node` alone. Empty where it is no Conv or ConvTranspose of 1 to 3 dimensions in f32, f16 or bf16 with elements. Values
/// lie in the graph's own order, channels before positions, in the graph's own dtype (SetForm).
///
/// Under `strict`, Relu is only taken along by a ConvTranspose, whose epilogue is a kernel of ours: cuDNN's makes 0 of NaN, which
/// Mendel's keeps.
std::vector<ConvolutionMatch> MatchConvolution(const GroupingScope& scope, int32_t node, Numerics numerics);

/// Whether its bias or residual has numbers beyond `format` (ExceedsByConstants): infinite, were they rounded to it.
bool AddsBeyond(const Graph& graph, const ConvolutionMatch& match, DType format);

/// The same with x, w, the bias, the residual and the result in this form; a bias has no order of positions.
void SetForm(ConvolutionMatch& match, const StoredForm& form);

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_CUDNN_MATCH_H_
