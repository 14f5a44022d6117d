// A cuDNN convolution is a convolution with its epilogue as a cuDNN operation graph. Its engines
// are planned without a device.
#ifndef MENDEL_KERNELS_CUDA_CUDNN_CONVOLUTION_H_
#define MENDEL_KERNELS_CUDA_CUDNN_CONVOLUTION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/types.h"
#include "kernels/cuda/cudnn/engine.h"
#include "kernels/cuda/cudnn/table.h"
#include "kernels/cuda/emit/roofline.h"

namespace mendel::cuda {

/// Sigmoid, Silu (y * sigmoid(y)) and Gelu, by the error function or by tanh, are computed by cuDNN
/// engines that are compiled at run time.
enum class CudnnActivation { kNone, kRelu, kSigmoid, kSilu, kGelu, kGeluTanh };

/// y = activation(conv(x, w) + residual + bias), sums in f32. Shapes are [N, C, spatial...] in
/// whatever layout.
struct CudnnConvolution {
  DType dtype = DType::kF32;  ///< of all stored tensors: f32, f16 or bf16
  bool channels_last = false;
  bool transposed = false;  ///< from x to y as the gradient goes that a convolution from y to x
                            ///< has: w, strides and pads are that one's
  Shape x, w, y;            ///< w: [out channels, channels a group, kernel...]
  Ints strides, dilations, pads_begin, pads_end;
  bool bias = false;      ///< a tensor [1, out channels, 1...]
  bool residual = false;  ///< a tensor of y's shape and layout; needs a bias
  CudnnActivation activation = CudnnActivation::kNone;  ///< needs a bias

  bool HasActivation() const { return activation != CudnnActivation::kNone; }
};

/// Ids of the tensors that a plan reads and writes.
enum CudnnTensorId : int64_t { kCudnnX = 1, kCudnnW, kCudnnBias, kCudnnResidual, kCudnnY };

/// The rules for engines of `convolution`. A GPU has shown that number 50 of transposed
/// convolutions ignores that pads differ at the two ends (cuDNN 9.19, sm_90;
/// bench/results/gpu-nvidia-h200-2026-11-28.md). No note of cuDNN's says so.
EngineRules RulesOf(const CudnnConvolution& convolution, const CudnnNumerics& numerics,
                    bool may_compile);

/// Execution plans for the device with these properties, those that cuDNN's heuristics rank best
/// first; none where `numerics` or `limits` forbid all. Proposals that cuDNN answers with an error
/// are left out. InvalidArgument for shapes that do not fit or an epilogue
/// without bias, Unimplemented where cuDNN has no engine, ResourceExhausted for memory, Internal
/// for other errors that leave no engine.
///
/// The epilogue is in this order because cuDNN has precompiled engines for it with Relu or without
/// an activation. Other activations, and every epilogue of a transposed convolution, have engines
/// that are compiled at run time alone (CudnnLimits::may_compile), with the channels last.
absl::StatusOr<std::vector<CudnnEngine>> PlanConvolution(const Cudnn& cudnn,
                                                         const CudnnConvolution& convolution,
                                                         const CudnnNumerics& numerics,
                                                         const std::string& device_json,
                                                         const CudnnLimits& limits);

/// The engine with these knobs (EngineJsonOf) for the convolution, planned for the device, as an
/// earlier PlanConvolution of the same version found it. The text may come from anywhere.
/// InvalidArgument where it describes no engine. Unimplemented where the engine is not allowed, is
/// not possible here, or needs more workspace.
absl::StatusOr<CudnnEngine> PlanConvolutionAgain(
    const Cudnn& cudnn, const CudnnConvolution& convolution, const CudnnNumerics& numerics,
    const std::string& device_json, const CudnnLimits& limits, const std::string& engine_json);

/// Device properties as cuDNN takes them, of a present device, by its number. Plans run on devices
/// with the properties that they were made for.
absl::StatusOr<std::string> DevicePropertiesOf(const Cudnn& cudnn, int ordinal);
/// Device properties of a GPU that need not be present, from the published figures and limits of
/// its architecture. Clocks and sizes only steer the heuristics.
std::string DevicePropertiesJson(const GpuModel& gpu);

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_CUDNN_CONVOLUTION_H_
