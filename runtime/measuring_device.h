// What times depend on besides the program where a backend has a device of its own: its clock and power, and who else measures on
// it.
#ifndef MENDEL_RUNTIME_MEASURING_DEVICE_H_
#define MENDEL_RUNTIME_MEASURING_DEVICE_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/device_lock.h"

namespace mendel {

/// At one moment; what the device does not tell is absent.
struct DeviceConditions {
  std::optional<int> clock_mhz, max_clock_mhz;  ///< of the processors
  std::optional<int> memory_mhz;
  std::optional<double> watts, limit_watts;
  std::optional<int> celsius;
  /// Why the clock is not higher, e.g. "the power limit"; empty: nothing holds it back.
  std::optional<std::vector<std::string>> held_by;
};

/// "1980 of 1980 MHz, memory 2619 MHz, 312 of 700 W, 54 C, held back by the power limit"; "nothing told" where all is absent.
std::string ConditionsText(const DeviceConditions& conditions);

class MeasuringDevice {
 public:
  virtual ~MeasuringDevice() = default;
  /// NotFound or Unavailable where nothing tells them: no reason not to measure.
  virtual absl::StatusOr<DeviceConditions> Conditions() const = 0;
  /// To be held while a process measures. The status of DeviceLock::Take.
  virtual absl::StatusOr<std::unique_ptr<DeviceLock>> Lock(const LockWait& wait) const = 0;
};

}  // namespace mendel

#endif  // MENDEL_RUNTIME_MEASURING_DEVICE_H_
