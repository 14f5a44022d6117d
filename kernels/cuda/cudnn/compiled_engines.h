// The compiled engines are those whose kernels cuDNN compiles at run time. They are kept on disk,
// and a search compiles new ones only while its time lasts.
#ifndef MENDEL_KERNELS_CUDA_CUDNN_COMPILED_ENGINES_H_
#define MENDEL_KERNELS_CUDA_CUDNN_COMPILED_ENGINES_H_

#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/cuda/cudnn/engine.h"
#include "kernels/cuda/nvrtc/module_cache.h"

namespace mendel::cuda {

/// Thread-safe; threads that request the same new engine at the same time may each compile it.
/// Libraries of a process share one.
class CompiledEngines {
 public:
  /// The first engine of an operation graph depends on all of this.
  struct Source {
    std::string graph;  ///< operations, tensors and limits
    EngineRules rules;
    std::string device_json;
    std::string library;  ///< name and version
  };
  /// Plans engines, of which the first is taken (PlanEngines).
  using Compile = std::function<absl::StatusOr<std::vector<CudnnEngine>>()>;

  /// `seconds`: for compilations of engines that are offered, in this process; 0 allows none.
  /// `cache`: where their plans with the machine code stay, beside the kernels that NVRTC compiles.
  CompiledEngines(double seconds, ModuleCacheOptions cache)
      : seconds_left_(seconds), cache_(std::move(cache)) {}

  /// The engine that is kept for `source` and that its rules allow, or else the one that `compile`
  /// plans, which is then kept. Unimplemented where there is none. `offer`: Unavailable where it
  /// would be compiled and the time is spent; a compilation that begins within the time is
  /// finished. Other errors as of `compile`. An error stays the answer of this process, unless it
  /// is Unavailable or ResourceExhausted.
  absl::StatusOr<CudnnEngine> Get(const Source& source, bool offer, const Compile& compile);

 private:
  absl::StatusOr<CudnnEngine> Kept(const ModuleSource& module, const EngineRules& rules, bool offer,
                                   const Compile& compile);
  absl::StatusOr<CudnnEngine> Compiled(bool offer, const Compile& compile);

  std::mutex mutex_;  // of what follows, but for the cache
  double seconds_left_;
  std::map<std::string, absl::StatusOr<CudnnEngine>> known_;  // by the module's key
  ModuleCache cache_;
};

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_CUDNN_COMPILED_ENGINES_H_
