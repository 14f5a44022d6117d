// A GPU as a device: text compiled by NVRTC, launched through the driver.
#ifndef MENDEL_KERNELS_CUDA_GPU_DEVICE_H_
#define MENDEL_KERNELS_CUDA_GPU_DEVICE_H_

#include <memory>
#include <string>

#include "kernels/cuda/device.h"

namespace mendel::cuda {

/// Device 0, current on the calling thread. The status of Driver::Get or Compiler::Get where one is
/// missing.
absl::StatusOr<std::unique_ptr<Device>> OpenGpu();

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_GPU_DEVICE_H_
