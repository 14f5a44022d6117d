// NVIDIA's management library behind dlopen: clocks, power and temperature of a GPU. The few entry
// points that are needed are declared here.
#ifndef MENDEL_KERNELS_CUDA_DRIVER_TABLE_NVML_H_
#define MENDEL_KERNELS_CUDA_DRIVER_TABLE_NVML_H_

#include <string>

#include "absl/status/statusor.h"
#include "kernels/cuda/driver_table/driver.h"
#include "runtime/measuring_device.h"

namespace mendel::cuda {

struct NvmlDevice;

/// The library's entry points as in nvml.h, named without "nvml" and version suffix. Results are 0
/// or an error.
struct Nvml {
  int (*Init)() = nullptr;
  const char* (*ErrorString)(int error) = nullptr;
  int (*SystemGetDriverVersion)(char* version, unsigned length) = nullptr;
  int (*DeviceGetHandleByUUID)(const char* uuid, NvmlDevice** device) = nullptr;
  int (*DeviceGetClockInfo)(NvmlDevice* device, int clock, unsigned* mhz) = nullptr;
  int (*DeviceGetMaxClockInfo)(NvmlDevice* device, int clock, unsigned* mhz) = nullptr;
  int (*DeviceGetPowerUsage)(NvmlDevice* device, unsigned* milliwatts) = nullptr;
  int (*DeviceGetEnforcedPowerLimit)(NvmlDevice* device, unsigned* milliwatts) = nullptr;
  int (*DeviceGetTemperature)(NvmlDevice* device, int sensor, unsigned* celsius) = nullptr;
  int (*DeviceGetCurrentClocksThrottleReasons)(NvmlDevice* device,
                                               unsigned long long* reasons) = nullptr;

  std::string path;
  std::string driver_version;  ///< "580.65.06"

  /// The table of this process, initialized. NotFound where there is no library, Unavailable where
  /// it cannot be used.
  static absl::StatusOr<const Nvml*> Get();
  /// Initializes a table whose entries are set, and reads `driver_version`.
  absl::Status Start();
  /// The conditions of the device with this UUID ("GPU-..."). Readings that a device does not have
  /// are absent; Unavailable when there is no such device.
  absl::StatusOr<DeviceConditions> Conditions(const std::string& uuid) const;
  /// OK, or Unavailable with `what` and the library's text.
  absl::Status Check(int result, const char* what) const;
};

/// "GPU-" and the bytes as nvidia-smi writes them.
std::string UuidText(const DeviceUuid& uuid);

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_DRIVER_TABLE_NVML_H_
