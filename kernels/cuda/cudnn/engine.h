// An engine is cuDNN's way to compute an operation graph. It may be used if its arithmetic and its
// memory are allowed.
#ifndef MENDEL_KERNELS_CUDA_CUDNN_ENGINE_H_
#define MENDEL_KERNELS_CUDA_CUDNN_ENGINE_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "graph/types.h"

namespace mendel::cuda {

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
  /// Engines whose kernels cuDNN compiles at run time are allowed, too. Planning one takes up to
  /// some seconds and needs the driver and NVRTC.
  bool may_compile = false;
};

struct CudnnEngine {
  std::string plan_json;  ///< what cuDNN of the same version makes the execution plan of again
  int64_t workspace_bytes = 0;
  int64_t index = 0;       ///< cuDNN's number of the engine among those for this kind of graph
  std::vector<int> notes;  ///< cudnn::kTensorCores and so on
  bool compiled_at_run_time = false;
};

/// The rules by which engines of an operation graph are allowed.
struct EngineRules {
  DType dtype;  ///< of what is multiplied
  CudnnNumerics numerics;
  bool may_compile = false;                 ///< CudnnLimits::may_compile
  std::vector<int64_t> wrong_engines = {};  ///< numbers of those that compute this graph wrongly

  /// OK, or Unimplemented with the engine's number.
  absl::Status Check(const CudnnEngine& engine) const;
};

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_CUDNN_ENGINE_H_
