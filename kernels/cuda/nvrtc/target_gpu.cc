#include "kernels/cuda/nvrtc/target_gpu.h"

#include "base/status.h"

namespace mendel::cuda {

absl::StatusOr<TargetGpu> FindTargetGpu(const Driver& driver, const Compiler& compiler) {
  TargetGpu gpu;
  int device = 0, major = 0, minor = 0;
  char name[128] = "";
  MENDEL_RETURN_IF_ERROR(driver.Check(driver.DeviceGet(&device, 0), "cuDeviceGet"));
  MENDEL_RETURN_IF_ERROR(
      driver.Check(driver.DeviceGetName(name, sizeof name, device), "cuDeviceGetName"));
  MENDEL_RETURN_IF_ERROR(driver.Check(driver.DeviceGetAttribute(&major, kAttributeMajor, device),
                                      "cuDeviceGetAttribute"));
  MENDEL_RETURN_IF_ERROR(driver.Check(driver.DeviceGetAttribute(&minor, kAttributeMinor, device),
                                      "cuDeviceGetAttribute"));
  gpu.name = name;
  gpu.architecture = major * 10 + minor;
  if (!compiler.Supports(gpu.architecture)) {
    return absl::FailedPreconditionError(Cat("NVRTC ", compiler.version(), " does not know sm_",
                                             gpu.architecture, " of ", gpu.name));
  }
  return gpu;
}

}  // namespace mendel::cuda
