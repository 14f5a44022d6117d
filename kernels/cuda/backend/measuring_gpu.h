// The GPU that measurements are made on: device 0, its lock by its UUID, its conditions by NVML.
#ifndef MENDEL_KERNELS_CUDA_BACKEND_MEASURING_GPU_H_
#define MENDEL_KERNELS_CUDA_BACKEND_MEASURING_GPU_H_

#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "kernels/cuda/driver_table/driver.h"
#include "kernels/cuda/driver_table/nvml.h"
#include "runtime/measuring_device.h"

namespace mendel::cuda {

class MeasuringGpu final : public MeasuringDevice {
 public:
  /// Both must outlive this. `nvml` may be the status of Nvml::Get, which Conditions then returns.
  MeasuringGpu(const Driver& driver, absl::StatusOr<const Nvml*> nvml)
      : driver_(driver), nvml_(std::move(nvml)) {}
  absl::StatusOr<DeviceConditions> Conditions() const override;
  absl::StatusOr<std::unique_ptr<DeviceLock>> Lock(const LockWait& wait) const override;

 private:
  /// The whole GPU's UUID: the parts of a partitioned GPU (MIG) disturb each other, and share one
  /// lock.
  absl::StatusOr<std::string> Uuid() const;

  const Driver& driver_;
  const absl::StatusOr<const Nvml*> nvml_;
};

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_BACKEND_MEASURING_GPU_H_
