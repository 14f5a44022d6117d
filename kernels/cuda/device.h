// A device runs emitted kernels: it is a GPU, or the emulator. Tests use this interface, so that
// one command runs them on either.
#ifndef MENDEL_KERNELS_CUDA_DEVICE_H_
#define MENDEL_KERNELS_CUDA_DEVICE_H_

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/cuda/emit/kernel_text.h"

namespace mendel::cuda {

/// Memory that a kernel's pointer refers to. It is copied to the device before the launch and back
/// after it.
struct Argument {
  std::string name;
  std::span<std::byte> bytes;
  bool writable = false;
  size_t offset = 0;   ///< the pointer is this many bytes beyond the begin of `bytes`
  size_t granule = 2;  ///< bytes that no two threads of a launch share: of the smallest element
};

/// A module of compiled texts.
class Module {
 public:
  virtual ~Module() = default;
  /// Runs the entry `name` to its end. Equal pointers are passed for arguments with equal `bytes`.
  virtual absl::Status Launch(const std::string& name, const LaunchShape& launch,
                              std::span<const Argument> arguments) = 0;
};

class Device {
 public:
  virtual ~Device() = default;
  /// Name and versions, for people.
  virtual std::string Identity() const = 0;
  /// Compiles and loads. InvalidArgument with the compiler's log when a text does not compile.
  virtual absl::StatusOr<std::unique_ptr<Module>> Load(
      std::span<const EmittedKernel> kernels) const = 0;
};

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_DEVICE_H_
