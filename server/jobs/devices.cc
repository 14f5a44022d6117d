#include "server/jobs/devices.h"

#include "runtime/backend.h"

namespace mendel::server {

std::vector<WorkerDevice> DevicesOfThisMachine() {
  std::vector<WorkerDevice> devices;
  for (const Backend* backend : AllBackends()) {
    if (backend->Probe().ok()) devices.push_back({std::string(backend->name()), backend->Identity(), backend->Isa()});
  }
  return devices;
}

}  // namespace mendel::server
