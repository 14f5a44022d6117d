// What a correction should cost on GPUs that nobody has measured here: estimates, and printed as such.
#ifndef MENDEL_KERNELS_CUDA_EMIT_ROOFLINE_H_
#define MENDEL_KERNELS_CUDA_EMIT_ROOFLINE_H_

#include <span>
#include <string>

#include "graph/graph.h"
#include "kernels/cuda/emit/kernel_text.h"

namespace mendel::cuda {

/// Published figures of one GPU (data sheets: dense f32 without tensor cores, memory bandwidth).
struct GpuModel {
  const char* name;
  int compute_capability;  ///< 80: sm_80
  double flops;            ///< f32 operations a second
  double bandwidth;        ///< bytes a second
  int multiprocessors;
};
std::span<const GpuModel> KnownGpus();

/// Seconds: the larger of the arithmetic, spread over the multiprocessors that the launch's blocks can fill, and the traffic;
/// plus one launch. An estimate.
double RooflineSeconds(const Correction& correction, const LaunchShape& launch, const Tile& tile, const GpuModel& gpu);

/// Seconds of the mutant that node `patch` (a Patch) of `graph` mends: of every operator that only the patched value needs, the
/// larger of arithmetic and traffic, and a launch. Reshapes and slices cost nothing, elementwise operators are taken to be fused.
/// An estimate, by the same rule as RooflineSeconds.
double MutantSeconds(const Graph& graph, int32_t patch, const GpuModel& gpu);

/// Share of a multiprocessor's threads that can be resident with so many registers a thread and bytes of shared memory a block:
/// an estimate from the limits of that compute capability.
double Occupancy(int compute_capability, int registers, int shared_bytes, int threads);

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_EMIT_ROOFLINE_H_
