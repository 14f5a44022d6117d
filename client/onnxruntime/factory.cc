#include "client/onnxruntime/factory.h"

#include <memory>
#include <string>
#include <utility>

#include "client/c_api/mendel_optimizer.h"
#include "client/onnxruntime/provider.h"
#include "client/onnxruntime/refusal.h"
#include "client/onnxruntime/runtime_api.h"
#include "client/onnxruntime/settings.h"

namespace mendel::ort {
namespace {

struct Factory : EpFactory {
  explicit Factory(const RuntimeApi& opened) : api(opened) {}
  RuntimeApi api;
};

Status* FindDevices(EpFactory* self, const HardwareDevice* const* devices, size_t count,
                    EpDevice** ep_devices, size_t max, size_t* num) {
  const RuntimeApi& api = static_cast<Factory*>(self)->api;
  *num = 0;
  for (size_t k = 0; k < count && *num < max; ++k) {
    if (kHardwareDeviceType(api.main(), devices[k]) != kCpuDevice) continue;
    Status* const status =
        kCreateEpDevice(api.ep(), self, devices[k], nullptr, nullptr, &ep_devices[*num]);
    if (status != nullptr) return status;
    ++*num;
  }
  return nullptr;
}

Status* CreateEp(EpFactory* self, const HardwareDevice* const*, const KeyValuePairs* const*, size_t,
                 const SessionOptions* options, const Logger* logger, Ep** ep) {
  const RuntimeApi& api = static_cast<Factory*>(self)->api;
  *ep = nullptr;
  auto settings = ReadSettings(api, options);
  if (!settings.ok()) return api.Give(settings.status());
  *ep = NewProvider(api, *std::move(settings), logger);
  return nullptr;
}

EpFactory* NewFactory(const RuntimeApi& api) {
  auto factory = std::make_unique<Factory>(api);
  factory->get_name = [](const EpFactory*) { return static_cast<const char*>(kProviderName); };
  factory->get_vendor = [](const EpFactory*) { return "Mendel"; };
  factory->get_supported_devices = FindDevices;
  factory->create_ep = CreateEp;
  factory->release_ep = [](EpFactory*, Ep* ep) { FreeProvider(ep); };
  factory->get_vendor_id = [](const EpFactory*) -> uint32_t { return 0; };
  factory->get_version = [](const EpFactory*) { return mendel_version(); };
  // Memory is ONNX Runtime's own for the CPU: no allocator, no transfer, no stream.
  factory->create_allocator = [](EpFactory*, const void*, const KeyValuePairs*,
                                 void** allocator) -> Status* {
    *allocator = nullptr;
    return nullptr;
  };
  factory->release_allocator = [](EpFactory*, void*) {};
  factory->create_data_transfer = [](EpFactory*, void** transfer) -> Status* {
    *transfer = nullptr;
    return nullptr;
  };
  factory->is_stream_aware = [](const EpFactory*) { return false; };
  return factory.release();
}

}  // namespace
}  // namespace mendel::ort

extern "C" {

mendel::ort::Status* CreateEpFactories(const char*, const mendel::ort::ApiBase* base,
                                       const mendel::ort::Logger*,
                                       mendel::ort::EpFactory** factories, size_t max,
                                       size_t* count) {
  *count = 0;
  const auto api = mendel::ort::RuntimeApi::Open(base);
  if (!api.ok()) return mendel::ort::Refuse(base, std::string(api.status().message()));
  if (max < 1) return mendel::ort::Refuse(base, "there is no room for a factory");
  factories[0] = mendel::ort::NewFactory(*api);
  *count = 1;
  return nullptr;
}

mendel::ort::Status* ReleaseEpFactory(mendel::ort::EpFactory* factory) {
  delete static_cast<mendel::ort::Factory*>(factory);
  return nullptr;
}
}
