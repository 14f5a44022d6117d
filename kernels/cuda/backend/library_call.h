// A library call is a launch that a library makes instead of a native kernel. It is described
// without a device, loaded onto one, and put onto its stream.
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

/// A library's own state on a device, such as cuDNN's handle. An executable has one, which its
/// calls share, and which is destroyed after them.
class LibraryHandle {
 public:
  virtual ~LibraryHandle() = default;
};
/// Handles by the library's name. A call adds its library's handle where it is missing.
using LibraryHandles = std::map<std::string, std::unique_ptr<LibraryHandle>, std::less<>>;

/// The stream and the memory of a call for as long as it is loaded.
struct CallSite {
  DriverStream* stream = nullptr;
  /// Device addresses of the group's operands, then of its result. All are aligned to 256 bytes.
  std::vector<uint64_t> pointers;
  /// Device address of workspace_bytes() bytes, aligned to 256; 0 where the call needs none.
  uint64_t workspace = 0;
};

/// A call on a device.
class LoadedCall {
 public:
  virtual ~LoadedCall() = default;
  /// Puts the call onto its stream; may be called again. The first call is never captured: the
  /// library may load code in it. Later calls may be captured: they neither allocate device memory
  /// nor wait. Errors: Internal, with the library's text.
  virtual absl::Status Enqueue() = 0;
};

/// The description of a call without a device. Immutable.
class LibraryCall {
 public:
  virtual ~LibraryCall() = default;
  /// The name that reports show (Step::kernel).
  virtual std::string name() const = 0;
  /// Device memory that the call writes to while it runs, shared with other steps.
  virtual int64_t workspace_bytes() const = 0;
  /// Loads the call. The device's context must be current. The stream and the memory of `site` and
  /// `handles` outlive the result.
  virtual absl::StatusOr<std::unique_ptr<LoadedCall>> Load(const CallSite& site,
                                                           LibraryHandles& handles) const = 0;
};

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_BACKEND_LIBRARY_CALL_H_
