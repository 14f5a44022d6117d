#include "kernels/cuda/gpu_device.h"

#include <map>
#include <utility>
#include <vector>

#include "base/status.h"
#include "kernels/cuda/driver_table/driver.h"
#include "kernels/cuda/nvrtc/compiler.h"

namespace mendel::cuda {
namespace {

// The attribute's number is that of cuda.h.
constexpr int kFunctionSharedBytes = 8;
constexpr unsigned kSharedWithoutAsking = 48 << 10;

/// Device memory of one launch.
class DeviceMemory {
 public:
  explicit DeviceMemory(const Driver& driver) : driver_(driver) {}
  ~DeviceMemory() {
    for (const auto& [host, address] : addresses_) driver_.MemFree(address);
  }
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  /// The address that stands for `argument`, whose bytes have been copied.
  absl::StatusOr<uint64_t> Upload(const Argument& argument) {
    auto found = addresses_.find(argument.bytes.data());
    if (found == addresses_.end()) {
      uint64_t address = 0;
      MENDEL_RETURN_IF_ERROR(
          driver_.Check(driver_.MemAlloc(&address, argument.bytes.size()), "cuMemAlloc"));
      found = addresses_.emplace(argument.bytes.data(), address).first;
      MENDEL_RETURN_IF_ERROR(
          driver_.Check(driver_.MemcpyHtoD(address, argument.bytes.data(), argument.bytes.size()),
                        "cuMemcpyHtoD"));
    }
    return found->second + argument.offset;
  }
  absl::Status Download(const Argument& argument) {
    const uint64_t address = addresses_.at(argument.bytes.data());
    return driver_.Check(driver_.MemcpyDtoH(argument.bytes.data(), address, argument.bytes.size()),
                         "cuMemcpyDtoH");
  }

 private:
  const Driver& driver_;
  std::map<const std::byte*, uint64_t> addresses_;
};

class GpuModule : public Module {
 public:
  explicit GpuModule(const Driver& driver) : driver_(driver) {}
  ~GpuModule() override {
    for (DriverModule* module : modules_) driver_.ModuleUnload(module);
  }

  absl::Status Add(const std::string& name, const CompiledKernel& kernel) {
    DriverModule* module = nullptr;
    MENDEL_RETURN_IF_ERROR(
        driver_.Check(driver_.ModuleLoadData(&module, kernel.cubin.data()), "cuModuleLoadData"));
    modules_.push_back(module);
    return driver_.Check(driver_.ModuleGetFunction(&functions_[name], module, name.c_str()),
                         "cuModuleGetFunction");
  }

  absl::Status Launch(const std::string& name, const LaunchShape& launch,
                      std::span<const Argument> arguments) override {
    const auto function = functions_.find(name);
    if (function == functions_.end()) return absl::NotFoundError(Cat("no kernel ", name));
    if (launch.shared > kSharedWithoutAsking) {
      MENDEL_RETURN_IF_ERROR(
          driver_.Check(driver_.FuncSetAttribute(function->second, kFunctionSharedBytes,
                                                 static_cast<int>(launch.shared)),
                        "cuFuncSetAttribute"));
    }
    DeviceMemory memory(driver_);
    std::vector<uint64_t> addresses;
    for (const Argument& argument : arguments) {
      MENDEL_ASSIGN_OR_RETURN(const uint64_t address, memory.Upload(argument));
      addresses.push_back(address);
    }
    std::vector<void*> parameters;
    for (uint64_t& address : addresses) parameters.push_back(&address);
    MENDEL_RETURN_IF_ERROR(
        driver_.Check(driver_.LaunchKernel(function->second, launch.grid, 1, 1, launch.block, 1, 1,
                                           launch.shared, nullptr, parameters.data(), nullptr),
                      "cuLaunchKernel"));
    MENDEL_RETURN_IF_ERROR(driver_.Check(driver_.CtxSynchronize(), "cuCtxSynchronize"));
    for (const Argument& argument : arguments) {
      if (argument.writable) MENDEL_RETURN_IF_ERROR(memory.Download(argument));
    }
    return absl::OkStatus();
  }

 private:
  const Driver& driver_;
  std::vector<DriverModule*> modules_;
  std::map<std::string, DriverFunction*> functions_;
};

class GpuDevice : public Device {
 public:
  GpuDevice(const Driver& driver, const Compiler& compiler, std::string name, int architecture)
      : driver_(driver), compiler_(compiler), name_(std::move(name)), architecture_(architecture) {}

  std::string Identity() const override {
    return Cat(name_, ", sm_", architecture_, ", driver for CUDA ", driver_.version / 1000, ".",
               driver_.version % 1000 / 10, ", NVRTC ", compiler_.version());
  }
  absl::StatusOr<std::unique_ptr<Module>> Load(
      std::span<const EmittedKernel> kernels) const override {
    auto module = std::make_unique<GpuModule>(driver_);
    for (const EmittedKernel& kernel : kernels) {
      MENDEL_ASSIGN_OR_RETURN(const CompiledKernel compiled,
                              compiler_.Compile(kernel.text, kernel.name, architecture_));
      MENDEL_RETURN_IF_ERROR(module->Add(kernel.name, compiled));
    }
    return std::unique_ptr<Module>(std::move(module));
  }

 private:
  const Driver& driver_;
  const Compiler& compiler_;
  std::string name_;
  int architecture_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Device>> OpenGpu() {
  MENDEL_ASSIGN_OR_RETURN(const Driver* driver, Driver::Get());
  MENDEL_ASSIGN_OR_RETURN(const Compiler* compiler, Compiler::Get());
  int device = 0, major = 0, minor = 0;
  char name[128] = "";
  DriverContext* context = nullptr;
  MENDEL_RETURN_IF_ERROR(driver->Check(driver->DeviceGet(&device, 0), "cuDeviceGet"));
  MENDEL_RETURN_IF_ERROR(
      driver->Check(driver->DeviceGetName(name, sizeof name, device), "cuDeviceGetName"));
  MENDEL_RETURN_IF_ERROR(driver->Check(driver->DeviceGetAttribute(&major, kAttributeMajor, device),
                                       "cuDeviceGetAttribute"));
  MENDEL_RETURN_IF_ERROR(driver->Check(driver->DeviceGetAttribute(&minor, kAttributeMinor, device),
                                       "cuDeviceGetAttribute"));
  MENDEL_RETURN_IF_ERROR(
      driver->Check(driver->DevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain"));
  MENDEL_RETURN_IF_ERROR(driver->Check(driver->CtxSetCurrent(context), "cuCtxSetCurrent"));
  return std::unique_ptr<Device>(
      std::make_unique<GpuDevice>(*driver, *compiler, name, major * 10 + minor));
}

}  // namespace mendel::cuda
