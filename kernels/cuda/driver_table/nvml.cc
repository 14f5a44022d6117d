#include "kernels/cuda/driver_table/nvml.h"

#include <cstdio>
#include <memory>
#include <utility>

#include "base/status.h"
#include "kernels/cuda/driver_table/library.h"

namespace mendel::cuda {
namespace {

// Constants of nvml.h.
constexpr int kClockSm = 1, kClockMemory = 2, kTemperatureGpu = 0;

/// Texts of nvmlClocksThrottleReason*, for people.
constexpr std::pair<unsigned long long, const char*> kReasons[] = {
    {0x1, "idleness"},
    {0x2, "the clock that was set"},
    {0x4, "the power limit"},
    {0x8, "the hardware (heat, power or brake)"},
    {0x10, "the clock of a group of GPUs"},
    {0x20, "heat"},
    {0x40, "heat, by the hardware"},
    {0x80, "the power brake"},
    {0x100, "the display's clock"},
};

absl::Status ResolveAll(const Library& library, Nvml& nvml) {
  MENDEL_RETURN_IF_ERROR(Resolve(library, "nvmlInit_v2", nvml.Init));
  MENDEL_RETURN_IF_ERROR(Resolve(library, "nvmlErrorString", nvml.ErrorString));
  MENDEL_RETURN_IF_ERROR(
      Resolve(library, "nvmlSystemGetDriverVersion", nvml.SystemGetDriverVersion));
  MENDEL_RETURN_IF_ERROR(Resolve(library, "nvmlDeviceGetHandleByUUID", nvml.DeviceGetHandleByUUID));
  MENDEL_RETURN_IF_ERROR(Resolve(library, "nvmlDeviceGetClockInfo", nvml.DeviceGetClockInfo));
  MENDEL_RETURN_IF_ERROR(Resolve(library, "nvmlDeviceGetMaxClockInfo", nvml.DeviceGetMaxClockInfo));
  MENDEL_RETURN_IF_ERROR(Resolve(library, "nvmlDeviceGetPowerUsage", nvml.DeviceGetPowerUsage));
  MENDEL_RETURN_IF_ERROR(
      Resolve(library, "nvmlDeviceGetEnforcedPowerLimit", nvml.DeviceGetEnforcedPowerLimit));
  MENDEL_RETURN_IF_ERROR(Resolve(library, "nvmlDeviceGetTemperature", nvml.DeviceGetTemperature));
  // The call was renamed in 2023, and a driver may have either name. Conditions are reported
  // without it, too.
  if (!Resolve(library, "nvmlDeviceGetCurrentClocksThrottleReasons",
               nvml.DeviceGetCurrentClocksThrottleReasons)
           .ok() &&
      !Resolve(library, "nvmlDeviceGetCurrentClocksEventReasons",
               nvml.DeviceGetCurrentClocksThrottleReasons)
           .ok()) {
    nvml.DeviceGetCurrentClocksThrottleReasons = nullptr;
  }
  return absl::OkStatus();
}

absl::StatusOr<const Nvml*> OpenNvml() {
  MENDEL_ASSIGN_OR_RETURN(
      const Library library,
      OpenLibrary({"libnvidia-ml.so.1"}, {""}));  // the driver's; toolkits have stubs
  auto nvml = std::make_unique<Nvml>();
  nvml->path = library.path;
  MENDEL_RETURN_IF_ERROR(ResolveAll(library, *nvml));
  MENDEL_RETURN_IF_ERROR(nvml->Start());
  return nvml.release();
}

/// The reading that `query` returns; absent when the device has none.
template <class Query>
std::optional<int> ReadingOf(Query query) {
  unsigned value = 0;
  return query(&value) == 0 ? std::optional<int>(static_cast<int>(value)) : std::nullopt;
}

std::optional<double> Watts(const std::optional<int>& milliwatts) {
  return milliwatts.has_value() ? std::optional<double>(*milliwatts * 1e-3) : std::nullopt;
}

}  // namespace

absl::StatusOr<const Nvml*> Nvml::Get() {
  static const auto* nvml = new absl::StatusOr<const Nvml*>(OpenNvml());
  return *nvml;
}

absl::Status Nvml::Start() {
  MENDEL_RETURN_IF_ERROR(Check(Init(), "nvmlInit"));
  char version[96] = "";
  MENDEL_RETURN_IF_ERROR(
      Check(SystemGetDriverVersion(version, sizeof version), "nvmlSystemGetDriverVersion"));
  driver_version = version;
  return absl::OkStatus();
}

absl::StatusOr<DeviceConditions> Nvml::Conditions(const std::string& uuid) const {
  NvmlDevice* device = nullptr;
  MENDEL_RETURN_IF_ERROR(
      Check(DeviceGetHandleByUUID(uuid.c_str(), &device), "nvmlDeviceGetHandleByUUID"));
  DeviceConditions conditions;
  conditions.clock_mhz =
      ReadingOf([&](unsigned* mhz) { return DeviceGetClockInfo(device, kClockSm, mhz); });
  conditions.max_clock_mhz =
      ReadingOf([&](unsigned* mhz) { return DeviceGetMaxClockInfo(device, kClockSm, mhz); });
  conditions.memory_mhz =
      ReadingOf([&](unsigned* mhz) { return DeviceGetClockInfo(device, kClockMemory, mhz); });
  conditions.watts = Watts(
      ReadingOf([&](unsigned* milliwatts) { return DeviceGetPowerUsage(device, milliwatts); }));
  conditions.limit_watts = Watts(ReadingOf(
      [&](unsigned* milliwatts) { return DeviceGetEnforcedPowerLimit(device, milliwatts); }));
  conditions.celsius = ReadingOf(
      [&](unsigned* celsius) { return DeviceGetTemperature(device, kTemperatureGpu, celsius); });
  unsigned long long reasons = 0;
  if (DeviceGetCurrentClocksThrottleReasons == nullptr ||
      DeviceGetCurrentClocksThrottleReasons(device, &reasons) != 0) {
    return conditions;
  }
  conditions.held_by.emplace();
  for (const auto& [bit, words] : kReasons) {
    if ((reasons & bit) != 0) conditions.held_by->push_back(words);
  }
  return conditions;
}

absl::Status Nvml::Check(int result, const char* what) const {
  if (result == 0) return absl::OkStatus();
  const char* text = ErrorString(result);
  return absl::UnavailableError(
      Cat(what, ": ", text == nullptr ? "unknown error" : text, " (", result, ")"));
}

std::string UuidText(const DeviceUuid& uuid) {
  std::string text = "GPU-";
  for (size_t k = 0; k < sizeof uuid.bytes; ++k) {
    char byte[4];
    std::snprintf(byte, sizeof byte, "%02x", uuid.bytes[k]);
    text += Cat(k == 4 || k == 6 || k == 8 || k == 10 ? "-" : "", byte);
  }
  return text;
}

}  // namespace mendel::cuda
