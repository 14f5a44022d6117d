// The entry points of NVML that the program requests.

#include "kernels/cuda/testing/fake/libraries/entry.h"

MENDEL_FAKE_ENTRY0(nvmlInit_v2, Nvml, nvml, Init)
MENDEL_FAKE_ENTRY1(nvmlErrorString, Nvml, nvml, ErrorString)
MENDEL_FAKE_ENTRY2(nvmlSystemGetDriverVersion, Nvml, nvml, SystemGetDriverVersion)
MENDEL_FAKE_ENTRY2(nvmlDeviceGetHandleByUUID, Nvml, nvml, DeviceGetHandleByUUID)
MENDEL_FAKE_ENTRY3(nvmlDeviceGetClockInfo, Nvml, nvml, DeviceGetClockInfo)
MENDEL_FAKE_ENTRY3(nvmlDeviceGetMaxClockInfo, Nvml, nvml, DeviceGetMaxClockInfo)
MENDEL_FAKE_ENTRY2(nvmlDeviceGetPowerUsage, Nvml, nvml, DeviceGetPowerUsage)
MENDEL_FAKE_ENTRY2(nvmlDeviceGetEnforcedPowerLimit, Nvml, nvml, DeviceGetEnforcedPowerLimit)
MENDEL_FAKE_ENTRY3(nvmlDeviceGetTemperature, Nvml, nvml, DeviceGetTemperature)
MENDEL_FAKE_ENTRY2(nvmlDeviceGetCurrentClocksThrottleReasons, Nvml, nvml,
                   DeviceGetCurrentClocksThrottleReasons)
MENDEL_FAKE_ENTRY2(nvmlDeviceGetCurrentClocksEventReasons, Nvml, nvml,
                   DeviceGetCurrentClocksThrottleReasons)
