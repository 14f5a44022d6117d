// The CUDA driver behind dlopen: the few entry points that launching needs, declared here so that
// no toolkit is.
#ifndef MENDEL_KERNELS_CUDA_DRIVER_TABLE_DRIVER_H_
#define MENDEL_KERNELS_CUDA_DRIVER_TABLE_DRIVER_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace mendel::cuda {

struct DriverContext;
struct DriverModule;
struct DriverFunction;
struct DriverStream;
struct DriverEvent;
struct DriverGraph;
struct DriverGraphNode;
struct DriverGraphExec;

/// Attributes of a device, as in cuda.h: its compute capability, and the bytes of its L2 cache.
inline constexpr int kAttributeMajor = 75, kAttributeMinor = 76, kAttributeL2Bytes = 38;

/// CUuuid.
struct DeviceUuid {
  unsigned char bytes[16] = {};
};

/// The driver's entry points as in cuda.h, named without "cu" and version suffix. Results are 0 or
/// an error.
struct Driver {
  int (*Init)(unsigned flags) = nullptr;
  int (*DriverGetVersion)(int* version) = nullptr;
  int (*GetErrorString)(int error, const char** text) = nullptr;
  int (*DeviceGetCount)(int* count) = nullptr;
  int (*DeviceGet)(int* device, int ordinal) = nullptr;
  int (*DeviceGetName)(char* name, int length, int device) = nullptr;
  int (*DeviceGetAttribute)(int* value, int attribute, int device) = nullptr;
  int (*DeviceTotalMem)(size_t* bytes, int device) = nullptr;
  int (*DeviceGetUuid)(DeviceUuid* uuid,
                       int device) = nullptr;  ///< of the whole GPU, also where it is partitioned
  int (*DevicePrimaryCtxRetain)(DriverContext** context, int device) = nullptr;
  int (*DevicePrimaryCtxRelease)(int device) = nullptr;
  int (*CtxSetCurrent)(DriverContext* context) = nullptr;
  int (*CtxPushCurrent)(DriverContext* context) = nullptr;
  int (*CtxPopCurrent)(DriverContext** context) = nullptr;
  int (*CtxSynchronize)() = nullptr;
  int (*ModuleLoadData)(DriverModule** module, const void* image) = nullptr;
  int (*ModuleUnload)(DriverModule* module) = nullptr;
  int (*ModuleGetFunction)(DriverFunction** function, DriverModule* module,
                           const char* name) = nullptr;
  int (*FuncSetAttribute)(DriverFunction* function, int attribute, int value) = nullptr;
  int (*MemAlloc)(uint64_t* address, size_t bytes) = nullptr;
  int (*MemFree)(uint64_t address) = nullptr;
  int (*MemcpyHtoD)(uint64_t to, const void* from, size_t bytes) = nullptr;
  int (*MemcpyDtoH)(void* to, uint64_t from, size_t bytes) = nullptr;
  int (*MemHostAlloc)(void** address, size_t bytes, unsigned flags) = nullptr;
  int (*MemFreeHost)(void* address) = nullptr;
  int (*MemcpyHtoDAsync)(uint64_t to, const void* from, size_t bytes,
                         DriverStream* stream) = nullptr;
  int (*MemcpyDtoHAsync)(void* to, uint64_t from, size_t bytes, DriverStream* stream) = nullptr;
  int (*MemcpyDtoDAsync)(uint64_t to, uint64_t from, size_t bytes, DriverStream* stream) = nullptr;
  int (*MemsetD8Async)(uint64_t to, unsigned char value, size_t bytes,
                       DriverStream* stream) = nullptr;
  int (*StreamCreate)(DriverStream** stream, unsigned flags) = nullptr;
  int (*StreamDestroy)(DriverStream* stream) = nullptr;
  int (*StreamSynchronize)(DriverStream* stream) = nullptr;
  int (*StreamWaitEvent)(DriverStream* stream, DriverEvent* event, unsigned flags) = nullptr;
  int (*StreamGetCtx)(DriverStream* stream, DriverContext** context) = nullptr;
  int (*StreamIsCapturing)(DriverStream* stream, int* status) = nullptr;
  int (*StreamBeginCapture)(DriverStream* stream, int mode) = nullptr;
  int (*StreamEndCapture)(DriverStream* stream, DriverGraph** graph) = nullptr;
  int (*StreamGetCaptureInfo)(DriverStream* stream, int* status, uint64_t* id, DriverGraph** graph,
                              DriverGraphNode* const** dependencies, size_t* count) = nullptr;
  int (*StreamUpdateCaptureDependencies)(DriverStream* stream, DriverGraphNode** dependencies,
                                         size_t count, unsigned flags) = nullptr;
  int (*GraphInstantiate)(DriverGraphExec** exec, DriverGraph* graph,
                          unsigned long long flags) = nullptr;
  int (*GraphLaunch)(DriverGraphExec* exec, DriverStream* stream) = nullptr;
  int (*GraphExecDestroy)(DriverGraphExec* exec) = nullptr;
  int (*GraphDestroy)(DriverGraph* graph) = nullptr;
  int (*EventCreate)(DriverEvent** event, unsigned flags) = nullptr;
  int (*EventDestroy)(DriverEvent* event) = nullptr;
  int (*EventRecord)(DriverEvent* event, DriverStream* stream) = nullptr;
  int (*EventRecordWithFlags)(DriverEvent* event, DriverStream* stream, unsigned flags) = nullptr;
  int (*EventSynchronize)(DriverEvent* event) = nullptr;
  int (*EventElapsedTime)(float* milliseconds, DriverEvent* from, DriverEvent* to) = nullptr;
  int (*LaunchKernel)(DriverFunction* function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                      unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                      DriverStream* stream, void** arguments, void** extra) = nullptr;

  std::string path;
  int version = 0;  ///< 13000: 13.0, of the CUDA that the driver supports
  /// The first error that ended the use of the GPU by this process, 0 while there was none; copies
  /// share it.
  std::shared_ptr<std::atomic<int>> lost = std::make_shared<std::atomic<int>>(0);

  /// The table of this process, initialized, with at least one device. NotFound where there is no
  /// driver, Unavailable where it has no device, FailedPrecondition when it is older than CUDA
  /// 11.4.
  static absl::StatusOr<const Driver*> Get();
  /// The driver's version; 0 where there is no driver.
  static int VersionHere();
  /// Initializes a table whose entries are set, and reads `version`. Unavailable where there is no
  /// device or the kernel's module is another version's. FailedPrecondition when the driver is
  /// older than CUDA 11.4.
  absl::Status Start();
  /// OK, or a status that names `what`, with the driver's text:
  ///   ResourceExhausted   out of device memory
  ///   Unimplemented       the code is for another architecture, or newer than the driver
  ///   Unavailable         the device is lost (memory errors, fallen off the bus)
  ///   Internal            anything else
  /// After some errors - a kernel's fault, a lost device - a process cannot use the GPU any more.
  /// Their text says so, and they are remembered: every later call of Check or CheckUsable that
  /// fails for them names the first one.
  absl::Status Check(int result, const char* what) const;
  /// OK until such an error has happened.
  absl::Status CheckUsable() const;
};

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_DRIVER_TABLE_DRIVER_H_
