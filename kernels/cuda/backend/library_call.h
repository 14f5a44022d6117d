// A launch that a library makes instead of a kernel of ours: described without a device, loaded onto one, put onto its stream.
#ifndef MENDEL_KERNELS_CUDA_BACKEND_LIBRARY_CALL_H_
#define MENDEL_KERNELS_CUDA_BACKEND_LIBRARY_CALL_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/cuda/driver_table/driver.h"

namespace mendel::cuda {

/// A library's own state on a device, such as cuDNN's handle: one an executable, shared by its calls, destroyed after them.
class LibraryHandle {
 public:
  virtual ~LibraryHandle() = default;
};
/// By the library's name. A call that finds none of its library's adds it.
using LibraryHandles = std::map<std::string, std::unique_ptr<LibraryHandle>, std::less<>>;

/// Where a call works for as long as it is loaded.
struct CallSite {
  DriverStream* stream = nullptr;
  std::vector<uint64_t> pointers;  ///< device addresses of the group's operands, then of its result; aligned to 256 bytes
  uint64_t workspace = 0;          ///< of workspace_bytes() on the device, likewise; 0 where none are needed
};

/// A call on a device.
class LoadedCall {
 public:
  virtual ~LoadedCall() = default;
  /// Puts the call onto its stream, any number of times. The first one is not captured, so that the library may load what it needs;
  /// later ones may be, and neither allocate device memory nor wait. Errors are Internal with the library's text.
  virtual absl::Status Enqueue() = 0;
};

/// What is known of a call without a device. Immutable.
class LibraryCall {
 public:
  virtual ~LibraryCall() = default;
  /// For people: Step::kernel.
  virtual std::string name() const = 0;
  /// Device memory that the call writes to while it runs, shared with other steps.
  virtual int64_t workspace_bytes() const = 0;
  /// With the device's context current. The site's stream, memory and the handles outlive the result.
  virtual absl::StatusOr<std::unique_ptr<LoadedCall>> Load(const CallSite& site, LibraryHandles& handles) const = 0;
};

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_BACKEND_LIBRARY_CALL_H_
