// A cuDNN convolution is a convolution with its epilogue as a cuDNN operation graph. Its engines
// are planned without a device.
#ifndef MENDEL_KERNELS_CUDA_CUDNN_CONVOLUTION_H_
#define MENDEL_KERNELS_CUDA_CUDNN_CONVOLUTION_H_

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/types.h"
#include "kernels/cuda/cudnn/table.h"
#include "kernels/cuda/emit/roofline.h"

namespace mendel::cuda {

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
  bool relu = false;      ///< needs a bias
};

/// Ids of the tensors that a plan reads and writes.
enum CudnnTensorId : int64_t { kCudnnX = 1, kCudnnW, kCudnnBias, kCudnnResidual, kCudnnY };

/// The arithmetic that an engine may use, besides f32 sums in another order.
struct CudnnNumerics {
  /// f32 is multiplied as TF32, by tensor cores, and never otherwise. f16 and bf16 may always use
  /// them, since they are exact products of the stored numbers. Engines that convert f32 to smaller
  /// formats than TF32 are never used.
  bool tf32 = false;
  bool winograd = false;  ///< and Fourier transforms
};

/// The limits of planning.
struct CudnnLimits {
  size_t engines = 1;
  int64_t workspace_bytes = std::numeric_limits<int64_t>::max();  ///< workspace bytes of an engine
  /// Planning adds every engine that cuDNN has, by number, to the heuristics' proposals, with
  /// cuDNN's own choice of its knobs.
  bool exhaustive = false;
};

struct CudnnEngine {
  std::string plan_json;  ///< what cuDNN of the same version makes the execution plan of again
  int64_t workspace_bytes = 0;
  int64_t index = 0;       ///< cuDNN's number of the engine among those for this kind of graph
  std::vector<int> notes;  ///< cudnn::kTensorCores and so on
  bool compiled_at_run_time = false;
};

/// Execution plans for the device with these properties, those that cuDNN's heuristics rank best
/// first; none where `numerics` or `limits` forbid all. Engines whose kernels cuDNN compiles at run
/// time are left out: that takes seconds a convolution, and a driver. Proposals that cuDNN answers
/// with an error are left out, too. InvalidArgument for shapes that do not fit or an epilogue
/// without bias, Unimplemented where cuDNN has no engine, ResourceExhausted for memory, Internal
/// for other errors that leave no engine.
///
/// The epilogue is in this order because cuDNN has compiled engines for it. An activation straight
/// after the sums, the bias before the residual, or other activations are compiled at run time,
/// which needs a driver: those stay Mendel's native kernels.
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
