// Executes one launch of compiled kernel text on this machine, and checks it as it runs.
#ifndef MENDEL_KERNELS_CUDA_TESTING_EMULATOR_LAUNCH_H_
#define MENDEL_KERNELS_CUDA_TESTING_EMULATOR_LAUNCH_H_

#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "kernels/cuda/emit/kernel_text.h"
#include "kernels/cuda/testing/emulator/memory.h"

namespace mendel::cuda {

/// The entry function (trampoline) of a kernel and the emulator's state, both in a library that
/// Compile built.
struct EmulatedKernel {
  void (*call)(void** arguments) = nullptr;
  void* state = nullptr;            ///< mendel_emulator_state
  unsigned char* shared = nullptr;  ///< mendel_shared
  size_t shared_bytes = 0;
  /// Memory of the library itself (tables of constants), which may be read.
  uintptr_t image_low = 0, image_high = 0;
};

/// Runs all blocks one after the other. Between two barriers the threads of a block run in order.
/// The kernel may touch `buffers` only; `arguments` point to its parameters. The first fault gives
/// Aborted. The message begins with the kind of fault:
///   "out of bounds", "misaligned", "race", "uninitialized shared memory", "stale shared memory",
///   "written twice", "read and written", "divergent barrier", "divergent warp", "copy under way".
/// Divergent warp: a warp does a tensor-core product as a whole, but some of its threads do not
/// reach it. Copy under way: an asynchronous copy may arrive at any time until its thread awaits
/// it. The emulator writes its memory at the start and at the wait. Any use in between is a fault.
/// Stale shared memory: a thread reads it more than one barrier after it was written.
/// Double-buffered tiles never do this. Memory marked MENDEL_KEPT is exempt. One launch at a time
/// in a process.
absl::Status Emulate(const EmulatedKernel& kernel, const LaunchShape& launch,
                     std::span<void*> arguments, std::span<const GlobalBuffer> buffers);

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_TESTING_EMULATOR_LAUNCH_H_
