// An engine query finds the engines that cuDNN has for an operation graph, and makes their
// execution plans without a device.
#ifndef MENDEL_KERNELS_CUDA_CUDNN_ENGINE_PLAN_H_
#define MENDEL_KERNELS_CUDA_CUDNN_ENGINE_PLAN_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/types.h"
#include "kernels/cuda/cudnn/descriptor.h"
#include "kernels/cuda/cudnn/engine.h"

namespace mendel::cuda {

/// A query for the engines of one operation graph. `cudnn` outlives it.
class EngineQuery {
 public:
  using Shared = std::shared_ptr<Descriptor>;

  /// `graph` is finalized. Errors are those of cuDNN with the device's properties.
  static absl::StatusOr<EngineQuery> Make(const Cudnn& cudnn, Shared graph, EngineRules rules,
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
  EngineQuery(const Cudnn& cudnn, Shared graph, EngineRules rules)
      : cudnn_(cudnn), rules_(std::move(rules)), graph_(std::move(graph)) {}
  /// Finishes the plan, which has its configuration or text, and completes `engine`.
  absl::Status Finish(Descriptor& plan, CudnnEngine& engine) const;

  const Cudnn& cudnn_;
  EngineRules rules_;
  Shared device_, graph_;
};

/// The engines that `query` finds within the limits, those that the heuristics rank best first;
/// none where rules or limits forbid all. Proposals that cuDNN answers with an error are left out.
/// Unimplemented, naming `what`, where cuDNN proposes nothing. ResourceExhausted for memory, and
/// other errors where they leave no engine.
absl::StatusOr<std::vector<CudnnEngine>> PlanEngines(const EngineQuery& query,
                                                     const CudnnLimits& limits,
                                                     const std::string& what);

/// A text of unknown length, up to its end.
absl::StatusOr<std::string> TextOf(const Descriptor& descriptor, int name);

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_CUDNN_ENGINE_PLAN_H_
