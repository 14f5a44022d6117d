// The predictor estimates a graph's time on a GPU that is absent: a roofline for every launch.
#ifndef MENDEL_KERNELS_CUDA_OFFLINE_PREDICTOR_H_
#define MENDEL_KERNELS_CUDA_OFFLINE_PREDICTOR_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/graph.h"
#include "kernels/cuda/backend/library_groups.h"
#include "kernels/cuda/backend/partition.h"
#include "kernels/cuda/emit/roofline.h"
#include "runtime/numerics.h"

namespace mendel::cuda {

/// Stored with plans and searches: another number means other predictions.
inline constexpr int kPredictorVersion = 4;

/// Thread-safe.
class Predictor {
 public:
  explicit Predictor(const GpuModel& gpu);

  const GpuModel& gpu() const { return gpu_; }
  /// The libraries whose calls are algorithms here (AssumedLibraries).
  const std::vector<const CallLibrary*>& libraries() const { return libraries_; }
  /// InvalidArgument names the node and an algorithm that it does not have.
  absl::StatusOr<Partition> PartitionFor(const Graph& graph,
                                         const std::map<int32_t, std::string>& algorithms,
                                         Numerics numerics) const;

  /// Seconds by node id. A launch counts for the node whose value it stores: the larger of its
  /// arithmetic at the peak of its precision and of its traffic at full bandwidth, and
  /// kLaunchSeconds. Traffic is what the launch reads of values outside of it, each once, and its
  /// result. Sums of products reach a share of the peak (assumptions.h); a tiled kernel's blocks
  /// are counted whole, in waves over the multiprocessors. Conversions between forms are launches,
  /// or parts of them, like any other. Kernels that are fused horizontally with others
  /// (backend/horizontal_fusion.h) are predicted as alone. Corrections that emitted kernels compute
  /// (emit/correction_plan.h) count for their Patch: the kernels' own roofline (emit/roofline.h),
  /// and a copy where they are not in place. Nodes that no kernel computes are launches of their
  /// own. Predictions rank programs; kernels that miss their roofline are slower than this.
  ///
  /// Errors are those of PartitionFor.
  absl::StatusOr<std::vector<double>> Seconds(const Graph& graph,
                                              const std::map<int32_t, std::string>& algorithms,
                                              Numerics numerics) const;

 private:
  const GpuModel& gpu_;
  const std::vector<std::unique_ptr<const CallLibrary>> owned_;
  std::vector<const CallLibrary*> libraries_;
};

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_OFFLINE_PREDICTOR_H_
