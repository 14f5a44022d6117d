#include "kernels/cuda/testing/fake/fake_driver.h"

#include <cstring>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "base/status.h"
#include "kernels/cuda/testing/emulator/device.h"
#include "kernels/cuda/testing/fake/fake_image.h"
#include "kernels/cuda/testing/fake/fake_state.h"

namespace mendel::cuda {
namespace {

int GetErrorString(int error, const char** text) {
  const FakeDriver::State& state = *FakeDriver::State::current;
  if (error == kFakeIllegalAddress) {
    *text = state.fault.empty() ? "an illegal memory access was encountered" : state.fault.c_str();
  } else if (error == kFakeEccUncorrectable) {
    *text = "uncorrectable ECC error encountered";
  } else {
    *text = error == 999 ? "injected" : "refused by the fake driver";
  }
  return 0;
}

int GetAttribute(int* value, int attribute, int) {
  const FakeCall call("DeviceGetAttribute");
  if (call.code != 0) return call.code;
  // The attributes' numbers are those of cuda.h; clocks are in kHz.
  constexpr int kClock = 13, kMultiprocessors = 16, kMemoryClock = 36;
  switch (attribute) {
    case kAttributeMajor:
      *value = call.state.architecture / 10;
      return 0;
    case kAttributeMinor:
      *value = call.state.architecture % 10;
      return 0;
    case kAttributeL2Bytes:
      *value = 1 << 16;
      return 0;
    case kClock:
      *value = 1980000;
      return 0;
    case kMultiprocessors:
      *value = 4;
      return 0;
    case kMemoryClock:
      *value = 2619000;
      return 0;
    default:
      return kFakeInvalidValue;
  }
}

int GetName(char* name, int length, int) {
  const FakeCall call("DeviceGetName");
  std::strncpy(name, "emulated device", static_cast<size_t>(length) - 1);
  return call.code;
}

int Retain(DriverContext** context, int) {
  const FakeCall call("DevicePrimaryCtxRetain");
  if (call.code != 0) return call.code;
  ++call.state.contexts;
  *context = FakePrimaryContext();
  return 0;
}

int Release(int) {
  const FakeCall call("DevicePrimaryCtxRelease");
  if (call.state.contexts == 0) return kFakeInvalidContext;
  --call.state.contexts;
  return 0;
}

/// Loads a text that is its own image. Entries that were prepared are compiled already; for others
/// the text is compiled here.
int LoadText(FakeDriver::State& state, const std::string& text,
             FakeDriver::State::FakeModule& module) {
  FakeDriver::State::Texts own;
  const std::vector<EmittedKernel> kernels = FakeKernelsOf(text);
  for (const EmittedKernel& kernel : kernels) {
    const auto prepared = state.prepared.find(kernel.name);
    if (prepared == state.prepared.end() && own == nullptr) {
      auto compiled = EmulatedModule::Compile(kernels);
      state.fault = compiled.ok() ? "" : std::string(compiled.status().message());
      if (!compiled.ok()) return kFakeInvalidImage;
      own = *std::move(compiled);
    }
    module.entries[kernel.name] = prepared == state.prepared.end() ? own : prepared->second;
  }
  return 0;
}

int LoadImage(FakeDriver::State& state, const FakeImage& image,
              FakeDriver::State::FakeModule& module) {
  if (image.architecture != state.architecture) return kFakeNoBinaryForGpu;
  auto opened = EmulatedModule::Open(image.library);
  state.fault = opened.ok() ? "" : std::string(opened.status().message());
  if (!opened.ok()) return kFakeInvalidImage;
  const FakeDriver::State::Texts texts = *std::move(opened);
  for (const std::string& entry : image.entries) module.entries[entry] = texts;
  return 0;
}

int LoadModule(DriverModule** module, const void* image) {
  const FakeCall call("ModuleLoadData");
  if (call.code != 0) return call.code;
  auto made = std::make_unique<FakeDriver::State::FakeModule>();
  const int code = IsFakeImage(image)
                       ? LoadImage(call.state, ReadFakeImage(image), *made)
                       : LoadText(call.state, static_cast<const char*>(image), *made);
  if (code != 0) return code;
  *module = call.state.NewHandle<DriverModule*>();
  call.state.modules[*module] = std::move(made);
  return 0;
}

int UnloadModule(DriverModule* module) {
  const FakeCall call("ModuleUnload");
  const auto found = call.state.modules.find(module);
  if (found == call.state.modules.end()) return kFakeInvalidHandle;
  std::erase_if(call.state.functions, [&](const auto& function) {
    return function.second.module == found->second.get();
  });
  call.state.modules.erase(found);
  return 0;
}

int GetFunction(DriverFunction** function, DriverModule* module, const char* name) {
  const FakeCall call("ModuleGetFunction");
  if (call.code != 0) return call.code;
  const auto found = call.state.modules.find(module);
  if (found == call.state.modules.end()) return kFakeInvalidHandle;
  if (found->second->entries.count(name) == 0) return kFakeNotFound;
  *function = call.state.NewHandle<DriverFunction*>();
  call.state.functions[*function] = {found->second.get(), name};
  return 0;
}

/// The only attribute is the bytes of dynamic shared memory (8), up to 227 KiB as on sm_90.
int SetAttribute(DriverFunction* function, int attribute, int value) {
  constexpr int kDynamicSharedBytes = 8, kMostShared = 227 << 10;
  const FakeCall call("FuncSetAttribute");
  if (call.code != 0) return call.code;
  const auto found = call.state.functions.find(function);
  if (found == call.state.functions.end()) return kFakeInvalidHandle;
  if (attribute != kDynamicSharedBytes || value < 0 || value > kMostShared)
    return kFakeInvalidValue;
  found->second.most_shared = static_cast<unsigned>(value);
  return 0;
}

constexpr size_t kPadding = 256;  // of each allocation, for its alignment

int Allocate(uint64_t* address, size_t bytes) {
  const FakeCall call("MemAlloc");
  if (call.code != 0) return call.code;
  if (bytes == 0) return kFakeInvalidValue;
  if (call.state.IsCapturing()) return kFakeCaptureUnsupported;
  size_t taken = bytes;
  for (const auto& [begin, memory] : call.state.memory) taken += memory.size() - kPadding;
  if (taken > call.state.most_memory) return kFakeOutOfMemory;
  // Dirty, and aligned as device memory is.
  std::vector<std::byte> memory(bytes + kPadding, std::byte{0xa5});
  const uint64_t begin = (reinterpret_cast<uint64_t>(memory.data()) + 255) / 256 * 256;
  *address = begin;
  call.state.memory[begin] = std::move(memory);
  return 0;
}

int Free(uint64_t address) {
  const FakeCall call("MemFree");
  call.state.Finish();  // as freeing does
  call.state.order.Forget(address);
  return call.state.memory.erase(address) == 1 ? 0 : kFakeInvalidValue;
}

int AllocateHost(void** address, size_t bytes, unsigned) {
  const FakeCall call("MemHostAlloc");
  if (call.code != 0) return call.code;
  if (call.state.IsCapturing()) return kFakeCaptureUnsupported;
  std::vector<std::byte> memory(bytes + kPadding, std::byte{0xa5});
  *address =
      reinterpret_cast<void*>((reinterpret_cast<uintptr_t>(memory.data()) + 255) / 256 * 256);
  call.state.host_memory[*address] = std::move(memory);
  return 0;
}

int FreeHost(void* address) {
  const FakeCall call("MemFreeHost");
  return call.state.host_memory.erase(address) == 1 ? 0 : kFakeInvalidValue;
}

void SetEntries(Driver& table) {
  table.Init = [](unsigned) { return FakeCall("Init").code; };
  table.DriverGetVersion = [](int* version) {
    const FakeCall call("DriverGetVersion");
    *version = call.state.version;
    return call.code;
  };
  table.GetErrorString = &GetErrorString;
  table.DeviceGetCount = [](int* count) {
    const FakeCall call("DeviceGetCount");
    if (call.code == 0) *count = 1;
    return call.code;
  };
  table.DeviceGet = [](int* device, int ordinal) {
    *device = ordinal;
    const int code = FakeCall("DeviceGet").code;
    return code != 0 ? code : (ordinal == 0 ? 0 : kFakeInvalidValue);
  };
  table.DeviceGetName = &GetName;
  table.DeviceGetAttribute = &GetAttribute;
  table.DeviceTotalMem = [](size_t* bytes, int) {
    *bytes = size_t{1} << 30;
    return FakeCall("DeviceTotalMem").code;
  };
  table.DevicePrimaryCtxRetain = &Retain;
  table.DevicePrimaryCtxRelease = &Release;
  table.DeviceGetUuid = [](DeviceUuid* uuid, int) {
    for (int k = 0; k < 16; ++k) uuid->bytes[k] = static_cast<unsigned char>(0x10 * (k % 10) + k);
    return FakeCall("DeviceGetUuid").code;
  };
  table.CtxPushCurrent = [](DriverContext*) {
    const FakeCall call("CtxPushCurrent");
    if (call.code == 0) ++call.state.pushed;
    return call.code;
  };
  table.CtxPopCurrent = [](DriverContext** context) {
    const FakeCall call("CtxPopCurrent");
    *context = FakePrimaryContext();
    return --call.state.pushed < 0 ? static_cast<int>(kFakeInvalidContext) : call.code;
  };
  table.CtxSetCurrent = [](DriverContext*) { return FakeCall("CtxSetCurrent").code; };
  table.ModuleLoadData = &LoadModule;
  table.ModuleUnload = &UnloadModule;
  table.ModuleGetFunction = &GetFunction;
  table.FuncSetAttribute = &SetAttribute;
  table.MemAlloc = &Allocate;
  table.MemFree = &Free;
  table.MemHostAlloc = &AllocateHost;
  table.MemFreeHost = &FreeHost;
}

}  // namespace

FakeDriver::State* FakeDriver::State::current = nullptr;

FakeCall::FakeCall(const char* entry) : state(*FakeDriver::State::current), lock_(state.mutex) {
  const bool counts = state.fail_entry.empty() || state.fail_entry == entry;
  const bool injected = counts && ++state.calls == state.fail_at;
  if (injected) state.failed_call = entry;
  if (injected &&
      (state.fail_with == kFakeIllegalAddress || state.fail_with == kFakeEccUncorrectable)) {
    state.sticky = state.fail_with;
  }
  const bool asks_the_device = std::string_view(entry).starts_with("Device") &&
                               !std::string_view(entry).starts_with("DevicePrimary");
  code = injected ? state.fail_with : (asks_the_device ? 0 : state.sticky);
}

FakeDriver::FakeDriver() : state_(std::make_unique<State>()) {
  MENDEL_CHECK(State::current == nullptr);
  State::current = state_.get();
  table_.path = "emulator";
  table_.version = 13000;
  SetEntries(table_);
  SetStreamEntries(table_);
  SetGraphEntries(table_);
}

FakeDriver::~FakeDriver() { State::current = nullptr; }

absl::Status FakeDriver::Prepare(const std::string& texts) {
  const std::vector<EmittedKernel> kernels = FakeKernelsOf(texts);
  MENDEL_ASSIGN_OR_RETURN(std::unique_ptr<EmulatedModule> compiled,
                          EmulatedModule::Compile(kernels));
  const State::Texts module = std::move(compiled);
  for (const EmittedKernel& kernel : kernels) state_->prepared[kernel.name] = module;
  return absl::OkStatus();
}

void FakeDriver::SetVersion(int version) { state_->version = version; }

void FakeDriver::SetArchitecture(int architecture) { state_->architecture = architecture; }

void FakeDriver::SetMemory(size_t bytes) { state_->most_memory = bytes; }

DriverStream* FakeDriver::ForeignStream() {
  auto* stream = state_->NewHandle<DriverStream*>();
  state_->streams[stream].context = reinterpret_cast<DriverContext*>(uintptr_t{2});
  return stream;
}

void FakeDriver::FailAt(int64_t call, int error, const std::string& entry) {
  state_->calls = 0;
  state_->fail_entry = entry;
  state_->fail_at = call;
  state_->fail_with = error;
  state_->failed_call.clear();
}

bool FakeDriver::HasFailed() const { return !state_->failed_call.empty(); }
std::string FakeDriver::FailedCall() const { return state_->failed_call; }
int64_t FakeDriver::Calls() const { return state_->calls; }
std::string FakeDriver::Leaks() const { return state_->Leaks(); }

}  // namespace mendel::cuda
