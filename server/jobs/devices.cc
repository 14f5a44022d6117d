#include "server/jobs/devices.h"

#include "runtime/backend.h"
#include "runtime/offline_device.h"

namespace mendel::server {

std::vector<WorkerDevice> DevicesOfThisMachine() {
  std::vector<WorkerDevice> devices;
  for (const Backend* backend : AllBackends()) {
    if (backend->Probe().ok())
      devices.push_back({std::string(backend->name()), backend->Identity(), backend->Isa()});
  }
  for (const std::string& name : OfflineDeviceNames()) {
    const auto device = MakeOfflineDevice(name);
    if (device.ok())
      devices.push_back({name, (*device)->backend().Identity(), (*device)->backend().Isa(), true});
  }
  return devices;
}

}  // namespace mendel::server
