// The GPU that texts are compiled for and run on.
#ifndef MENDEL_KERNELS_CUDA_NVRTC_TARGET_GPU_H_
#define MENDEL_KERNELS_CUDA_NVRTC_TARGET_GPU_H_

#include <string>

#include "absl/status/statusor.h"
#include "kernels/cuda/driver_table/driver.h"
#include "kernels/cuda/nvrtc/compiler.h"

namespace mendel::cuda {

struct TargetGpu {
  std::string name;
  int architecture = 0;  ///< 90: compute capability 9.0
};

/// Device 0 of a driver that has one. FailedPrecondition names a compiler that does not know its
/// architecture; errors of the driver as Driver::Check.
absl::StatusOr<TargetGpu> FindTargetGpu(const Driver& driver, const Compiler& compiler);

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_NVRTC_TARGET_GPU_H_
