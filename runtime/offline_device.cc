#include "runtime/offline_device.h"

#include <map>
#include <utility>

#include "base/status.h"

namespace mendel {
namespace {

using Make = std::unique_ptr<OfflineDevice> (*)(const std::string& name);

std::map<std::string, Make>& Devices() {
  static auto* devices = new std::map<std::string, Make>();
  return *devices;
}

}  // namespace

OfflineDeviceRegistrar::OfflineDeviceRegistrar(std::vector<std::string> names, Make make) {
  for (std::string& name : names) Devices().emplace(std::move(name), make);
}

std::vector<std::string> OfflineDeviceNames() {
  std::vector<std::string> names;
  for (const auto& [name, make] : Devices()) names.push_back(name);
  return names;
}

absl::StatusOr<std::unique_ptr<OfflineDevice>> MakeOfflineDevice(const std::string& name) {
  const auto found = Devices().find(name);
  if (found != Devices().end()) return found->second(name);
  std::string names;
  for (const auto& [known, make] : Devices()) names += Cat(names.empty() ? "" : ", ", known);
  return InvalidInput("offline plans are not made for '", name, "' but for ",
                      names.empty() ? "no device" : names);
}

bool IsUnmeasured(const plan::PlanInfo& info) {
  return info.plan_ms().runs() == 0 && info.plan_ms().median_ms() > 0;
}

}  // namespace mendel
