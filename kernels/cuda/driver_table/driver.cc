#include "kernels/cuda/driver_table/driver.h"

#include <memory>

#include "base/status.h"
#include "kernels/cuda/driver_table/library.h"

namespace mendel::cuda {
namespace {

constexpr int kOldestDriver = 11040;

/// The meaning of an error for the caller. kFailed stands for all errors of cuda.h that are simply
/// a failed call.
enum class Meaning {
  kFailed,
  kBusy,
  kOutOfMemory,
  kFault,
  kLostDevice,
  kOtherArchitecture,
  kDriverTooOld
};
Meaning MeaningOf(int error) {
  switch (error) {
    case 2:  // OUT_OF_MEMORY
      return Meaning::kOutOfMemory;
    case 700:  // ILLEGAL_ADDRESS
    case 702:  // LAUNCH_TIMEOUT
    case 710:  // ASSERT
    case 714:  // HARDWARE_STACK_ERROR
    case 715:  // ILLEGAL_INSTRUCTION
    case 716:  // MISALIGNED_ADDRESS
    case 717:  // INVALID_ADDRESS_SPACE
    case 718:  // INVALID_PC
    case 719:  // LAUNCH_FAILED
    case 721:  // TENSOR_MEMORY_LEAK
      return Meaning::kFault;
    case 226:  // CONTAINED: a memory error that ends this process's work alone
    case 214:  // ECC_UNCORRECTABLE
    case 220:  // NVLINK_UNCORRECTABLE
    case 709:  // CONTEXT_IS_DESTROYED
    case 911:  // EXTERNAL_DEVICE
      return Meaning::kLostDevice;
    case 46:  // DEVICE_UNAVAILABLE: another process has it for itself, now
      return Meaning::kBusy;
    case 209:  // NO_BINARY_FOR_GPU
      return Meaning::kOtherArchitecture;
    case 222:  // UNSUPPORTED_PTX_VERSION
      return Meaning::kDriverTooOld;
    default:
      return Meaning::kFailed;
  }
}

constexpr char kRestart[] = "; this process cannot use the GPU any more and must be started again";

std::string VersionText(int version) { return Cat(version / 1000, ".", version % 1000 / 10); }

absl::Status ResolveStreams(const Library& library, Driver& driver) {
  MENDEL_RETURN_IF_ERROR(Resolve(library, "cuStreamCreate", driver.StreamCreate));
  MENDEL_RETURN_IF_ERROR(Resolve(library, "cuStreamDestroy_v2", driver.StreamDestroy));
  MENDEL_RETURN_IF_ERROR(Resolve(library, "cuStreamSynchronize", driver.StreamSynchronize));
  MENDEL_RETURN_IF_ERROR(Resolve(library, "cuStreamWaitEvent", driver.StreamWaitEvent));
  MENDEL_RETURN_IF_ERROR(Resolve(library, "cuStreamGetCtx", driver.StreamGetCtx));
  MENDEL_RETURN_IF_ERROR(Resolve(library, "cuStreamIsCapturing", driver.StreamIsCapturing));
  MENDEL_RETURN_IF_ERROR(Resolve(library, "cuStreamBeginCapture_v2", driver.StreamBeginCapture));
  MENDEL_RETURN_IF_ERROR(Resolve(library, "cuStreamEndCapture", driver.StreamEndCapture));
  MENDEL_RETURN_IF_ERROR(
      Resolve(library, "cuStreamGetCaptureInfo_v2", driver.StreamGetCaptureInfo));
  MENDEL_RETURN_IF_ERROR(Resolve(library, "cuStreamUpdateCaptureDependencies",
                                 driver.StreamUpdateCaptureDependencies));
  MENDEL_RETURN_IF_ERROR(Resolve(library, "cuGraphInstantiateWithFlags", driver.GraphInstantiate));
  MENDEL_RETURN_IF_ERROR(Resolve(library, "cuGraphLaunch", driver.GraphLaunch));
  MENDEL_RETURN_IF_ERROR(Resolve(library, "cuGraphExecDestroy", driver.GraphExecDestroy));
  MENDEL_RETURN_IF_ERROR(Resolve(library, "cuGraphDestroy", driver.GraphDestroy));
  MENDEL_RETURN_IF_ERROR(Resolve(library, "cuEventCreate", driver.EventCreate));
  MENDEL_RETURN_IF_ERROR(Resolve(library, "cuEventDestroy_v2", driver.EventDestroy));
  MENDEL_RETURN_IF_ERROR(Resolve(library, "cuEventRecord", driver.EventRecord));
  MENDEL_RETURN_IF_ERROR(Resolve(library, "cuEventRecordWithFlags", driver.EventRecordWithFlags));
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
  MENDEL_RETURN_IF_ERROR(Resolve(library, "cuDeviceGetUuid", driver.DeviceGetUuid));
  MENDEL_RETURN_IF_ERROR(
      Resolve(library, "cuDevicePrimaryCtxRetain", driver.DevicePrimaryCtxRetain));
  MENDEL_RETURN_IF_ERROR(
      Resolve(library, "cuDevicePrimaryCtxRelease_v2", driver.DevicePrimaryCtxRelease));
  MENDEL_RETURN_IF_ERROR(Resolve(library, "cuCtxSetCurrent", driver.CtxSetCurrent));
  MENDEL_RETURN_IF_ERROR(Resolve(library, "cuCtxPushCurrent_v2", driver.CtxPushCurrent));
  MENDEL_RETURN_IF_ERROR(Resolve(library, "cuCtxPopCurrent_v2", driver.CtxPopCurrent));
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
  MENDEL_RETURN_IF_ERROR(Resolve(library, "cuMemcpyDtoDAsync_v2", driver.MemcpyDtoDAsync));
  MENDEL_RETURN_IF_ERROR(Resolve(library, "cuMemsetD8Async", driver.MemsetD8Async));
  MENDEL_RETURN_IF_ERROR(Resolve(library, "cuLaunchKernel", driver.LaunchKernel));
  return ResolveStreams(library, driver);
}

absl::StatusOr<const Driver*> OpenDriver() {
  // The toolkit's stub of the same name only serves linking, so that toolkit folders are not
  // searched.
  MENDEL_ASSIGN_OR_RETURN(const Library library, OpenLibrary({"libcuda.so.1"}, {""}));
  auto driver = std::make_unique<Driver>();
  driver->path = library.path;
  MENDEL_RETURN_IF_ERROR(ResolveAll(library, *driver));
  MENDEL_RETURN_IF_ERROR(driver->Start());
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

absl::Status Driver::Start() {
  if (const int result = Init(0); result != 0)
    return absl::UnavailableError(std::string(Check(result, "cuInit").message()));
  MENDEL_RETURN_IF_ERROR(Check(DriverGetVersion(&version), "cuDriverGetVersion"));
  if (version < kOldestDriver) {
    return absl::FailedPreconditionError(Cat("the driver is too old: it supports CUDA ",
                                             VersionText(version), ", and ",
                                             VersionText(kOldestDriver), " is needed"));
  }
  int count = 0;  // left untouched on error
  MENDEL_RETURN_IF_ERROR(Check(DeviceGetCount(&count), "cuDeviceGetCount"));
  return count > 0 ? absl::OkStatus() : absl::UnavailableError("the driver has no device");
}

absl::Status Driver::Check(int result, const char* what) const {
  if (result == 0) return absl::OkStatus();
  const char* text = nullptr;
  if (GetErrorString != nullptr) GetErrorString(result, &text);
  const std::string description =
      Cat(what, ": ", text == nullptr ? "unknown error" : text, " (", result, ")");
  switch (MeaningOf(result)) {
    case Meaning::kOutOfMemory:
      return absl::ResourceExhaustedError(Cat(what, ": out of device memory"));
    case Meaning::kOtherArchitecture:
      return absl::UnimplementedError(
          Cat(description, ": the code was compiled for another architecture than this device's"));
    case Meaning::kDriverTooOld:
      return absl::UnimplementedError(Cat(description, ": the driver, which supports CUDA ",
                                          VersionText(version),
                                          ", is older than the compiler of this code"));
    case Meaning::kBusy:
      return absl::UnavailableError(description);
    case Meaning::kFailed:
      return InternalError(description);
    case Meaning::kFault:
    case Meaning::kLostDevice:
      break;
  }
  int first = 0;
  if (!lost->compare_exchange_strong(first, result)) return Annotate(CheckUsable(), description);
  if (MeaningOf(result) == Meaning::kLostDevice)
    return absl::UnavailableError(Cat(description, kRestart));
  return InternalError(description, kRestart);
}

absl::Status Driver::CheckUsable() const {
  const int first = lost->load();
  if (first == 0) return absl::OkStatus();
  const char* text = nullptr;
  if (GetErrorString != nullptr) GetErrorString(first, &text);
  const std::string error =
      Cat(text == nullptr ? "unknown error" : text, " (", first, ")", kRestart);
  if (MeaningOf(first) == Meaning::kLostDevice)
    return absl::UnavailableError(Cat("the device was lost earlier: ", error));
  return InternalError("a kernel failed earlier: ", error);
}

}  // namespace mendel::cuda
