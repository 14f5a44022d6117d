// The compiled engines are those whose kernels cuDNN compiles at run time. They are kept on disk,
// and a search compiles new ones only while its time lasts.
#ifndef MENDEL_KERNELS_CUDA_CUDNN_COMPILED_ENGINES_H_
#define MENDEL_KERNELS_CUDA_CUDNN_COMPILED_ENGINES_H_

#include <functional>
#include <mutex>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "kernels/cuda/cudnn/engine.h"
#include "kernels/cuda/nvrtc/module_cache.h"

namespace mendel::cuda {

/// Thread-safe. Libraries of a process share one.
class CompiledEngines {
 public:
  /// Everything that an engine depends on.
  struct Source {
    std::string graph;  ///< operations, tensors and limits
    std::string device_json;
    std::string library;  ///< name and version
  };
  using Compile = std::function<absl::StatusOr<CudnnEngine>()>;

  /// `seconds`: for compilations of engines that are offered; 0 allows none. `cache`: where their
  /// plans with the machine code stay, beside the kernels that NVRTC compiles.
  CompiledEngines(double seconds, ModuleCacheOptions cache)
      : seconds_left_(seconds), cache_(std::move(cache)) {}

  /// The engine that is kept for `source`, or else the one that `compile` plans, which is then
  /// kept. `offer`: Unavailable where it would be compiled and the time is spent; a compilation
  /// that begins within the time is finished. Other errors as of `compile`.
  absl::StatusOr<CudnnEngine> Get(const Source& source, bool offer, const Compile& compile);

 private:
  absl::StatusOr<CudnnEngine> Compiled(bool offer, const Compile& compile);

  std::mutex mutex_;  // of the seconds
  double seconds_left_;
  ModuleCache cache_;
};

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_CUDNN_COMPILED_ENGINES_H_
