// Engines of an operation graph as cuDNN describes them, and the execution plans that are made of them, without a device.
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

/// What engines are asked for. `cudnn` outlives it.
class EngineQuery {
 public:
  using Shared = std::shared_ptr<Descriptor>;

  static absl::StatusOr<EngineQuery> Make(const Cudnn& cudnn, const CudnnConvolution& convolution, const CudnnNumerics& numerics,
                                          const std::string& device_json);

  /// Configurations that the heuristics of `mode` propose, best first.
  absl::StatusOr<std::vector<Shared>> Proposals(int mode) const;
  /// How many engines cuDNN has for graphs of this kind, by number, possible here or not.
  absl::StatusOr<int64_t> EngineCount() const;
  /// The engine of this number with cuDNN's own choice of its knobs. Unimplemented where it does not compute this graph.
  absl::StatusOr<Shared> ConfigOf(int64_t index) const;
  /// The engine of a configuration with its plan. Unimplemented where the numbers forbid it, and where it is not possible here
  /// after all.
  absl::StatusOr<CudnnEngine> PlannedEngine(const Shared& config) const;
  /// The plan that this text describes, which is of an engine that the numbers allow: as PlannedEngine otherwise.
  absl::StatusOr<CudnnEngine> PlanOf(int64_t index, const std::string& plan_json) const;

 private:
  EngineQuery(const Cudnn& cudnn, DType dtype, const CudnnNumerics& numerics) : cudnn_(cudnn), dtype_(dtype), numerics_(numerics) {}
  absl::Status CheckAllowed(const CudnnEngine& engine) const;
  /// Of the plan's configuration or text; completes `engine`.
  absl::Status Finish(Descriptor& plan, CudnnEngine& engine) const;

  const Cudnn& cudnn_;
  DType dtype_;
  CudnnNumerics numerics_;
  Shared device_, graph_;
};

/// A text of unknown length, without what follows its end.
absl::StatusOr<std::string> TextOf(const Descriptor& descriptor, int name);

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_CUDNN_ENGINE_PLAN_H_
