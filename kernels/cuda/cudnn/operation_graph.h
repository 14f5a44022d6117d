// A convolution with its epilogue as cuDNN's backend interface wants it.
#ifndef MENDEL_KERNELS_CUDA_CUDNN_OPERATION_GRAPH_H_
#define MENDEL_KERNELS_CUDA_CUDNN_OPERATION_GRAPH_H_

#include <memory>

#include "absl/status/statusor.h"
#include "kernels/cuda/cudnn/convolution.h"
#include "kernels/cuda/cudnn/descriptor.h"

namespace mendel::cuda {

/// A finalized graph of operations. `convolution` has been checked.
absl::StatusOr<std::shared_ptr<Descriptor>> MakeOperationGraph(const Cudnn& cudnn,
                                                               const CudnnConvolution& convolution);

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_CUDNN_OPERATION_GRAPH_H_
