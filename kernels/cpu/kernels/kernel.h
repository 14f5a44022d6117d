// The types that all kernels of the backend share: places in buffers, and one call.
#ifndef MENDEL_KERNELS_CPU_KERNELS_KERNEL_H_
#define MENDEL_KERNELS_CPU_KERNELS_KERNEL_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "kernels/cpu/lowering/layout.h"

namespace mendel::cpu {

/// A place says where a tensor lies: `offset` bytes into a buffer of the program.
struct Place {
  int buffer = -1;
  int64_t offset = 0;
  Layout layout;
};

/// The buffers' addresses during a run.
struct Bindings {
  std::vector<std::byte*> buffers;
  std::byte* scratch = nullptr;

  std::byte* Address(const Place& place) const {
    return buffers[static_cast<size_t>(place.buffer)] + place.offset;
  }
  template <class T>
  T* At(const Place& place) const {
    return reinterpret_cast<T*>(Address(place));
  }
};

class Kernel {
 public:
  virtual ~Kernel() = default;
  /// Called once, before Prepare: has a library generate the code that runs. Several kernels do so
  /// at once, each in one thread.
  virtual absl::Status Create() { return absl::OkStatus(); }
  /// Called once, before the first Run: all buffers but the caller's have their final addresses.
  virtual absl::Status Prepare(const Bindings&) { return absl::OkStatus(); }
  virtual absl::Status Run(const Bindings& bindings) = 0;
};

}  // namespace mendel::cpu

#endif  // MENDEL_KERNELS_CPU_KERNELS_KERNEL_H_
