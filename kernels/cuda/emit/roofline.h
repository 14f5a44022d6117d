// A roofline estimate is the expected cost of a correction on GPUs that are not measured here. It
// is printed as an estimate.
#ifndef MENDEL_KERNELS_CUDA_EMIT_ROOFLINE_H_
#define MENDEL_KERNELS_CUDA_EMIT_ROOFLINE_H_

#include <span>
#include <string>

#include "graph/device_rates.h"
#include "graph/graph.h"
#include "kernels/cuda/emit/kernel_text.h"

namespace mendel::cuda {

/// Published figures of one GPU.
struct GpuModel {
  const char* name;
  int compute_capability;  ///< 80: sm_80
  double flops;            ///< f32 operations a second, dense, without tensor cores
  double bandwidth;        ///< bytes a second
  int multiprocessors;
  double double_flops;  ///< f64 operations a second, likewise
  /// Of tensor cores, dense, sums in f32: operands of TF32, f16 and bf16. 0: they have no such
  /// operands.
  double tf32_flops, f16_flops, bf16_flops;
  const char* source;  ///< where the figures are published
};
/// One GPU an architecture, those for which estimates are written into kernels' texts first.
std::span<const GpuModel> AllGpus();
/// The GPUs for which estimates are written.
std::span<const GpuModel> KnownGpus();
/// The GPU of `compute_capability`; null where there is none.
const GpuModel* GpuOf(int compute_capability);

/// The assumed cost of a launch besides its work: the usual order of magnitude on an idle stream,
/// not measured here.
inline constexpr double kLaunchSeconds = 3e-6;

/// Operations in f32 without tensor cores: what a program may use under every class of numerics.
inline DeviceRates RatesOf(const GpuModel& gpu) {
  return {gpu.flops, gpu.bandwidth, kLaunchSeconds, .9};
}

/// Seconds: the larger of the arithmetic, spread over the multiprocessors that the launch's blocks
/// can fill, and the traffic; plus one launch. An estimate.
double RooflineSeconds(const Correction& correction, const LaunchShape& launch, const Tile& tile,
                       const GpuModel& gpu);

/// Seconds of the mutant that node `patch` (a Patch) of `graph` corrects: of every operator that
/// only the patched value needs, the larger of arithmetic and traffic, and a launch. Reshapes and
/// slices cost nothing, elementwise operators are taken to be fused. An estimate, by the same rule
/// as RooflineSeconds.
double MutantSeconds(const Graph& graph, int32_t patch, const GpuModel& gpu);

/// Share of a multiprocessor's threads that can be resident, given registers a thread and bytes
/// of shared memory a block: an estimate from the limits of that compute capability, one of
/// AllGpus; 0 for others.
double Occupancy(int compute_capability, int registers, int shared_bytes, int threads);

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_EMIT_ROOFLINE_H_
