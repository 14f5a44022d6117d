#include "kernels/cuda/driver_table/driver.h"

#include <memory>

#include "base/status.h"
#include "kernels/cuda/driver_table/library.h"

namespace mendel::cuda {
namespace {

constexpr int kOldestDriver = 11040;
constexpr int kOutOfMemory = 2;

absl::Status ResolveStreams(const Library& library, Driver& driver) {
  MENDEL_RETURN_IF_ERROR(Resolve(library, "cuStreamCreate", driver.StreamCreate));
  MENDEL_RETURN_IF_ERROR(Resolve(library, "cuStreamDestroy_v2", driver.StreamDestroy));
  MENDEL_RETURN_IF_ERROR(Resolve(library, "cuStreamSynchronize", driver.StreamSynchronize));
  MENDEL_RETURN_IF_ERROR(Resolve(library, "cuStreamBeginCapture_v2", driver.StreamBeginCapture));
  MENDEL_RETURN_IF_ERROR(Resolve(library, "cuStreamEndCapture", driver.StreamEndCapture));
  MENDEL_RETURN_IF_ERROR(Resolve(library, "cuGraphInstantiateWithFlags", driver.GraphInstantiate));
  MENDEL_RETURN_IF_ERROR(Resolve(library, "cuGraphLaunch", driver.GraphLaunch));
  MENDEL_RETURN_IF_ERROR(Resolve(library, "cuGraphExecDestroy", driver.GraphExecDestroy));
  MENDEL_RETURN_IF_ERROR(Resolve(library, "cuGraphDestroy", driver.GraphDestroy));
  MENDEL_RETURN_IF_ERROR(Resolve(library, "cuEventCreate", driver.EventCreate));
  MENDEL_RETURN_IF_ERROR(Resolve(library, "cuEventDestroy_v2", driver.EventDestroy));
  MENDEL_RETURN_IF_ERROR(Resolve(library, "cuEventRecord", driver.EventRecord));
  MENDEL_RETURN_IF_ERROR(Resolve(library, "cuEventSynchronize", driver.EventSynchronize));
  return Resolve(library, "cuEventElapsedTime", driver.EventElapsedTime);
}

absl::Status ResolveAll(const Library& library, Driver& driver) {
  MENDEL_RETURN_IF_ERROR(Resolve(library, "cuInit", driver.Init));
  MENDEL_RETURN_IF_ERROR(Resolve(library, "cuDriverGetVersion", driver.DriverGetVersion));
  MENDEL_RETURN_IF_ERROR(Resolve(library, "cuGetErrorString", driver.GetErrorString));
  MENDEL_RETURN_IF_ERROR(Resolve(library, "cuDeviceGetCount", driver.DeviceGetCount));
  MENDEL_RETURN_IF_ERROR(Resolve(library, "cuDeviceGet", driver.DeviceGet));
  MENDEL_RETURN_IF_ERROR(Resolve(library, "cuDeviceGetName", driver.DeviceGetName));
  MENDEL_RETURN_IF_ERROR(Resolve(library, "cuDeviceGetAttribute", driver.DeviceGetAttribute));
  MENDEL_RETURN_IF_ERROR(Resolve(library, "cuDeviceTotalMem_v2", driver.DeviceTotalMem));
  MENDEL_RETURN_IF_ERROR(Resolve(library, "cuDevicePrimaryCtxRetain", driver.DevicePrimaryCtxRetain));
  MENDEL_RETURN_IF_ERROR(Resolve(library, "cuDevicePrimaryCtxRelease_v2", driver.DevicePrimaryCtxRelease));
  MENDEL_RETURN_IF_ERROR(Resolve(library, "cuCtxSetCurrent", driver.CtxSetCurrent));
  MENDEL_RETURN_IF_ERROR(Resolve(library, "cuCtxSynchronize", driver.CtxSynchronize));
  MENDEL_RETURN_IF_ERROR(Resolve(library, "cuModuleLoadData", driver.ModuleLoadData));
  MENDEL_RETURN_IF_ERROR(Resolve(library, "cuModuleUnload", driver.ModuleUnload));
  MENDEL_RETURN_IF_ERROR(Resolve(library, "cuModuleGetFunction", driver.ModuleGetFunction));
  MENDEL_RETURN_IF_ERROR(Resolve(library, "cuFuncSetAttribute", driver.FuncSetAttribute));
  MENDEL_RETURN_IF_ERROR(Resolve(library, "cuMemAlloc_v2", driver.MemAlloc));
  MENDEL_RETURN_IF_ERROR(Resolve(library, "cuMemFree_v2", driver.MemFree));
  MENDEL_RETURN_IF_ERROR(Resolve(library, "cuMemcpyHtoD_v2", driver.MemcpyHtoD));
  MENDEL_RETURN_IF_ERROR(Resolve(library, "cuMemcpyDtoH_v2", driver.MemcpyDtoH));
  MENDEL_RETURN_IF_ERROR(Resolve(library, "cuMemHostAlloc", driver.MemHostAlloc));
  MENDEL_RETURN_IF_ERROR(Resolve(library, "cuMemFreeHost", driver.MemFreeHost));
  MENDEL_RETURN_IF_ERROR(Resolve(library, "cuMemcpyHtoDAsync_v2", driver.MemcpyHtoDAsync));
  MENDEL_RETURN_IF_ERROR(Resolve(library, "cuMemcpyDtoHAsync_v2", driver.MemcpyDtoHAsync));
  MENDEL_RETURN_IF_ERROR(Resolve(library, "cuLaunchKernel", driver.LaunchKernel));
  return ResolveStreams(library, driver);
}

absl::StatusOr<const Driver*> OpenDriver() {
  // The toolkit's stub of the same name only serves linking, so that toolkit folders are not searched.
  MENDEL_ASSIGN_OR_RETURN(const Library library, OpenLibrary({"libcuda.so.1"}, {""}));
  auto driver = std::make_unique<Driver>();
  driver->path = library.path;
  MENDEL_RETURN_IF_ERROR(ResolveAll(library, *driver));
  if (const int result = driver->Init(0); result != 0) {
    return absl::UnavailableError(std::string(driver->Check(result, "cuInit").message()));
  }
  MENDEL_RETURN_IF_ERROR(driver->Check(driver->DriverGetVersion(&driver->version), "cuDriverGetVersion"));
  if (driver->version < kOldestDriver)
    return absl::FailedPreconditionError(Cat("the driver's CUDA ", driver->version, " is older than 11.4"));
  int count = 0;  // left untouched on error
  MENDEL_RETURN_IF_ERROR(driver->Check(driver->DeviceGetCount(&count), "cuDeviceGetCount"));
  if (count == 0) return absl::UnavailableError("the driver has no device");
  return driver.release();
}

}  // namespace

absl::StatusOr<const Driver*> Driver::Get() {
  static const auto* driver = new absl::StatusOr<const Driver*>(OpenDriver());
  return *driver;
}

int Driver::VersionHere() {
  const auto driver = Get();
  return driver.ok() ? (*driver)->version : 0;
}

absl::Status Driver::Check(int result, const char* what) const {
  if (result == 0) return absl::OkStatus();
  const char* text = nullptr;
  if (GetErrorString != nullptr) GetErrorString(result, &text);
  if (result == kOutOfMemory) return absl::ResourceExhaustedError(Cat(what, ": out of device memory"));
  return InternalError(what, ": ", text == nullptr ? "unknown error" : text, " (", result, ")");
}

}  // namespace mendel::cuda
