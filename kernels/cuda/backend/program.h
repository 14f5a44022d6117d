// A graph as launches over one block of device memory: everything about a plan that needs no device.
#ifndef MENDEL_KERNELS_CUDA_BACKEND_PROGRAM_H_
#define MENDEL_KERNELS_CUDA_BACKEND_PROGRAM_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/graph.h"
#include "kernels/cuda/fusion/fused_kernel.h"
#include "runtime/backend.h"

namespace mendel::cuda {

/// A place in device memory.
struct DeviceBuffer {
  enum class Region { kArena, kWeights };
  Region region = Region::kArena;
  int64_t offset = 0;  ///< a multiple of kDeviceAlignment
  int64_t bytes = 0;
};
inline constexpr int64_t kDeviceAlignment = 256;

struct DeviceLaunch {
  std::string kernel;  ///< name of the entry
  LaunchShape shape;
  std::vector<DeviceBuffer> pointers;
  Step info;
};

/// What is copied from or to the caller. The staging buffer in pinned host memory has the same order.
struct DeviceCopy {
  TensorType type;
  std::string name;
  DeviceBuffer buffer;
  int64_t staging = 0;  ///< offset in the staging buffer
};

struct DeviceProgram {
  std::vector<std::string> texts;  ///< of the kernels, each once, without the preamble
  std::vector<DeviceLaunch> launches;
  std::vector<DeviceCopy> inputs, outputs;
  std::vector<std::byte> weights;  ///< all constants, as they lie in device memory
  int64_t arena_bytes = 0;
  int64_t staging_bytes = 0;

  /// The one module of the program: the preamble and all kernels.
  std::string ModuleText() const;
};

struct ProgramOptions {
  /// Values whose lives do not meet share memory. False: every value has its own.
  bool reuse_memory = true;
};

/// Folds what depends on no input (in double, rounded once), groups the rest into kernels, plans memory. Unimplemented names the
/// node that no kernel computes.
absl::StatusOr<DeviceProgram> LowerToDevice(const Graph& graph, const ProgramOptions& options = {});

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_BACKEND_PROGRAM_H_
