// The epilogue of a convolution as a kernel of ours, where cuDNN computes the sums alone.
#ifndef MENDEL_KERNELS_CUDA_CUDNN_FINISH_KERNEL_H_
#define MENDEL_KERNELS_CUDA_CUDNN_FINISH_KERNEL_H_

#include "kernels/cuda/cudnn/match.h"

namespace mendel::cuda {

/// `match` as a call without bias, residual and activation, and the kernel that adds and applies them where the sums lie.
ConvolutionMatch FinishedByKernel(ConvolutionMatch match);

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_CUDNN_FINISH_KERNEL_H_
