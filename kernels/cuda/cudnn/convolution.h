// Convolutions with their epilogue as cuDNN operation graphs, and the engines that cuDNN has for them, planned without a device.
#ifndef MENDEL_KERNELS_CUDA_CUDNN_CONVOLUTION_H_
#define MENDEL_KERNELS_CUDA_CUDNN_CONVOLUTION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/types.h"
#include "kernels/cuda/cudnn/table.h"
#include "kernels/cuda/emit/roofline.h"

namespace mendel::cuda {

/// y = activation(conv(x, w) + residual + bias), sums in f32. Shapes are [N, C, spatial...] in whatever layout.
struct CudnnConvolution {
  DType dtype = DType::kF32;  ///< of all stored tensors: f32, f16 or bf16
  bool channels_last = false;
  Shape x, w, y;  ///< w: [out channels, channels a group, kernel...]
  Ints strides, dilations, pads_begin, pads_end;
  bool bias = false;      ///< a tensor [1, out channels, 1...]
  bool residual = false;  ///< a tensor of y's shape and layout; needs a bias
  bool relu = false;      ///< needs a bias
};

/// What an engine's numbers may be made of, besides f32 sums in another order.
struct CudnnNumerics {
  bool tensor_cores =
      false;              ///< for f32: TF32. f16 and bf16 may always use them, since they are exact products of the stored numbers
  bool winograd = false;  ///< and Fourier transforms
};

struct CudnnEngine {
  std::string plan_json;  ///< what cuDNN of the same version makes the execution plan of again
  int64_t workspace_bytes = 0;
  std::vector<int> notes;  ///< cudnn::kTensorCores and so on
};

/// Execution plans for `gpu`, at most `max_engines`, those that cuDNN's heuristics rank best first; none where `numerics` forbids
/// all. InvalidArgument for shapes that do not fit or an epilogue without bias, Unimplemented where cuDNN has no engine, Internal
/// for its other errors.
///
/// The epilogue is in this order because cuDNN has compiled engines for it. An activation straight after the sums, the bias before
/// the residual, or other activations are compiled at run time, which needs a driver: those stay Mendel's own kernels.
absl::StatusOr<std::vector<CudnnEngine>> PlanConvolution(const Cudnn& cudnn, const CudnnConvolution& convolution,
                                                         const CudnnNumerics& numerics, const GpuModel& gpu, size_t max_engines);

/// Device properties as cuDNN takes them, of the published figures and limits of the architecture; clocks and sizes only steer the
/// heuristics.
std::string DevicePropertiesJson(const GpuModel& gpu);

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_CUDNN_CONVOLUTION_H_
