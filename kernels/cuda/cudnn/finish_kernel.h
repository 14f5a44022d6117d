// The epilogue of a convolution as a kernel of ours, where cuDNN computes the sums alone.
#ifndef MENDEL_KERNELS_CUDA_CUDNN_FINISH_KERNEL_H_
#define MENDEL_KERNELS_CUDA_CUDNN_FINISH_KERNEL_H_

#include "kernels/cuda/cudnn/match.h"

namespace mendel::cuda {

/// `match`, in its own form, as a call in `form` without bias, residual and activation, and the
/// kernel that adds and applies them where the call has left the sums. What is added is read in its
/// own form; there is no residual where `form` is another.
ConvolutionMatch FinishedByKernel(ConvolutionMatch match, const MemoryFormat& form);

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_CUDNN_FINISH_KERNEL_H_
