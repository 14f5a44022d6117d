// Describes what measured times depend on besides the program: clock, power, and other processes
// that measure on the device.
#ifndef MENDEL_RUNTIME_MEASURING_DEVICE_H_
#define MENDEL_RUNTIME_MEASURING_DEVICE_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/device_lock.h"

namespace mendel {

/// Conditions at one moment; what the device does not report is absent.
struct DeviceConditions {
  std::optional<int> clock_mhz, max_clock_mhz;  ///< of the processors
  std::optional<int> memory_mhz;
  std::optional<double> watts, limit_watts;
  std::optional<int> celsius;
  /// Reasons why the clock is not higher, e.g. "the power limit"; empty: nothing limits it.
  std::optional<std::vector<std::string>> held_by;
};

/// "1980 of 1980 MHz, memory 2619 MHz, 312 of 700 W, 54 C, throttled by the power limit"; "nothing
/// reported" where all is absent.
std::string ConditionsText(const DeviceConditions& conditions);

class MeasuringDevice {
 public:
  virtual ~MeasuringDevice() = default;
  /// NotFound or Unavailable if the device does not report its conditions. Measuring is still
  /// possible.
  virtual absl::StatusOr<DeviceConditions> Conditions() const = 0;
  /// Takes the lock that a process holds while it measures. Errors: those of DeviceLock::Take.
  virtual absl::StatusOr<std::unique_ptr<DeviceLock>> Lock(const LockWait& wait) const = 0;
};

}  // namespace mendel

#endif  // MENDEL_RUNTIME_MEASURING_DEVICE_H_
