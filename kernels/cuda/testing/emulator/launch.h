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

/// A kernel's trampoline and state in a library that Compile made.
struct EmulatedKernel {
  void (*call)(void** arguments) = nullptr;
  void* state = nullptr;            ///< mendel_emulator_state
  unsigned char* shared = nullptr;  ///< mendel_shared
  size_t shared_bytes = 0;
  /// Memory of the library itself (tables of constants), which may be read.
  uintptr_t image_low = 0, image_high = 0;
};

/// Runs all blocks, one after the other, the threads of a block between two barriers in order.
/// `buffers` are what the kernel may touch; `arguments` point to its parameters. Stops at the first
/// fault: Aborted, the message beginning with its kind:
///   "out of bounds", "misaligned", "race", "uninitialized shared memory", "stale shared memory",
///   "written twice", "read and written", "divergent barrier", "divergent warp", "copy under way".
/// A warp is divergent when some of its threads come to what it does as a whole (a product by
/// tensor cores), and others do not. An asynchronous copy may arrive at any time until its thread
/// awaits it: its memory is written both then and as it begins, contains no number between, and
/// whoever uses it between is reported of a copy under way. Stale: read more than one barrier after
/// it was written, which double-buffered tiles never do; what the text calls kept (MENDEL_KEPT) may
/// be. One launch at a time in a process.
absl::Status Emulate(const EmulatedKernel& kernel, const LaunchShape& launch,
                     std::span<void*> arguments, std::span<const GlobalBuffer> buffers);

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_TESTING_EMULATOR_LAUNCH_H_
