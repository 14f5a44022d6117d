// A planned convolution as a step of a program.
#ifndef MENDEL_KERNELS_CUDA_CUDNN_CONVOLUTION_CALL_H_
#define MENDEL_KERNELS_CUDA_CUDNN_CONVOLUTION_CALL_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/cuda/backend/library_call.h"
#include "kernels/cuda/cudnn/convolution.h"
#include "kernels/cuda/cudnn/table.h"

namespace mendel::cuda {

/// The call of `engine`, which was planned for the device with the properties `device_json`.
/// `kind`: what its name begins with. `tensors`: what the pointers of its site are, kCudnnY last.
/// Loading fails with FailedPrecondition where cuDNN does not make the plan again. `cudnn` outlives
/// the result.
std::shared_ptr<const LibraryCall> MakeConvolutionCall(const Cudnn& cudnn, std::string_view kind,
                                                       CudnnEngine engine,
                                                       std::vector<int64_t> tensors,
                                                       std::string device_json);

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_CUDNN_CONVOLUTION_CALL_H_
