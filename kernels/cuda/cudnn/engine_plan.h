// An engine query finds the engines that cuDNN has for an operation graph, and makes their
// execution plans without a device.
#ifndef MENDEL_KERNELS_CUDA_CUDNN_ENGINE_PLAN_H_
#define MENDEL_KERNELS_CUDA_CUDNN_ENGINE_PLAN_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/cuda/cudnn/convolution.h"
#include "kernels/cuda/cudnn/descriptor.h"

namespace mendel::cuda {

/// True for an engine that a GPU has shown to compute `convolution` wrongly: number 50 of
/// transposed convolutions ignores that pads differ at the two ends (cuDNN 9.19, sm_90;
/// bench/results/gpu-nvidia-h200-2026-11-28.md). No note of cuDNN's says so.
bool KnownWrong(const CudnnConvolution& convolution, int64_t engine);

/// A query for the engines of one convolution. `cudnn` outlives it.
class EngineQuery {
 public:
  using Shared = std::shared_ptr<Descriptor>;

  static absl::StatusOr<EngineQuery> Make(const Cudnn& cudnn, const CudnnConvolution& convolution,
                                          const CudnnNumerics& numerics,
                                          const std::string& device_json);

  /// Configurations that the heuristics of `mode` propose, best first.
  absl::StatusOr<std::vector<Shared>> Proposals(int mode) const;
  /// The number of engines that cuDNN has for graphs of this kind, possible here or not.
  absl::StatusOr<int64_t> EngineCount() const;
  /// The engine of this number with cuDNN's own choice of its knobs. Unimplemented where it does
  /// not compute this graph.
  absl::StatusOr<Shared> ConfigOf(int64_t index) const;
  /// The engine of a configuration with its plan. Unimplemented where the numerics forbid it, or
  /// where it turns out not to be possible here.
  absl::StatusOr<CudnnEngine> PlannedEngine(const Shared& config) const;
  /// The engine of the plan that this text describes, by its number. Unimplemented as for
  /// PlannedEngine.
  absl::StatusOr<CudnnEngine> PlanOf(int64_t index, const std::string& plan_json) const;

 private:
  EngineQuery(const Cudnn& cudnn, const CudnnConvolution& convolution,
              const CudnnNumerics& numerics)
      : cudnn_(cudnn), convolution_(convolution), numerics_(numerics) {}
  absl::Status CheckAllowed(const CudnnEngine& engine) const;
  /// Finishes the plan, which has its configuration or text, and completes `engine`.
  absl::Status Finish(Descriptor& plan, CudnnEngine& engine) const;

  const Cudnn& cudnn_;
  CudnnConvolution convolution_;
  CudnnNumerics numerics_;
  Shared device_, graph_;
};

/// A text of unknown length, up to its end.
absl::StatusOr<std::string> TextOf(const Descriptor& descriptor, int name);

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_CUDNN_ENGINE_PLAN_H_
