#include "kernels/cuda/backend/measuring_gpu.h"

#include "base/status.h"

namespace mendel::cuda {

absl::StatusOr<std::string> MeasuringGpu::Uuid() const {
  int device = 0;
  DeviceUuid uuid;
  MENDEL_RETURN_IF_ERROR(driver_.Check(driver_.DeviceGet(&device, 0), "cuDeviceGet"));
  MENDEL_RETURN_IF_ERROR(driver_.Check(driver_.DeviceGetUuid(&uuid, device), "cuDeviceGetUuid"));
  return UuidText(uuid);
}

absl::StatusOr<DeviceConditions> MeasuringGpu::Conditions() const {
  MENDEL_RETURN_IF_ERROR(nvml_.status());
  MENDEL_ASSIGN_OR_RETURN(const std::string uuid, Uuid());
  return (*nvml_)->Conditions(uuid);
}

absl::StatusOr<std::unique_ptr<DeviceLock>> MeasuringGpu::Lock(const LockWait& wait) const {
  MENDEL_ASSIGN_OR_RETURN(const std::string uuid, Uuid());
  return DeviceLock::Take(uuid, wait);
}

}  // namespace mendel::cuda
