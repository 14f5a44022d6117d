// A device program is a graph as launches over one block of device memory: everything about a plan
// that needs no device.
#ifndef MENDEL_KERNELS_CUDA_BACKEND_PROGRAM_H_
#define MENDEL_KERNELS_CUDA_BACKEND_PROGRAM_H_

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/graph.h"
#include "kernels/cuda/backend/library_call.h"
#include "kernels/cuda/backend/library_groups.h"
#include "kernels/cuda/fusion/fused_kernel.h"
#include "runtime/backend.h"

namespace mendel::cuda {

/// A place in device memory.
struct DeviceBuffer {
  size_t allocation = 0;  ///< of DeviceProgram::allocations
  int64_t offset = 0;     ///< a multiple of kDeviceAlignment
  int64_t bytes = 0;
};
inline constexpr int64_t kDeviceAlignment = 256;
/// `bytes` up to the next multiple of kDeviceAlignment.
inline int64_t DeviceAligned(int64_t bytes) {
  return (bytes + kDeviceAlignment - 1) / kDeviceAlignment * kDeviceAlignment;
}

/// A launch of a kernel, or of a library's call where `call` is set.
struct DeviceLaunch {
  std::string kernel = "";  ///< name of the entry
  LaunchShape shape = {};
  std::shared_ptr<const LibraryCall> call = nullptr;
  std::vector<DeviceBuffer> pointers = {};
  size_t results = 1;  ///< of the pointers, the last ones: what is written. The others are read
  DeviceBuffer workspace = {};  ///< workspace of a call; no bytes: it needs none
  Step info = {};
};

/// A copy from or to the caller. The staging buffer in pinned host memory has the same
/// order.
struct DeviceCopy {
  TensorType type;
  std::string name;
  DeviceBuffer buffer;
  int64_t staging = 0;  ///< offset in the staging buffer
};

/// An upload of constants to the device, made once.
struct DeviceUpload {
  DeviceBuffer to;
  int64_t from = 0;  ///< offset in DeviceProgram::weights
};

/// The order of the launches when they are replayed. All orders compute the same.
enum class LaunchOrder {
  kChain,       ///< one after the other, in the order of the graph's nodes
  kDepthFirst,  ///< one after the other, each soon after those whose results it reads, while the
                ///< cache has them
  kBranches,  ///< each waits for those alone whose memory it shares, so that branches may run side
              ///< by side
  kFaster,    ///< one of these, by a few runs when the program is loaded
};

struct DeviceProgram {
  std::vector<std::string> texts;    ///< texts of the kernels, each once, without the preamble
  std::vector<std::string> entries;  ///< entries of the texts
  std::vector<DeviceLaunch> launches;
  std::vector<DeviceCopy> inputs, outputs;
  std::vector<std::byte> weights;  ///< all constants
  std::vector<DeviceUpload> uploads;
  std::vector<int64_t> allocations;  ///< bytes; zero: none is needed
  size_t constants = 0;  ///< of the allocations, the first ones: nothing but constants lies there
  int64_t arena_bytes = 0;  ///< arena bytes of all values
  int64_t alive_bytes = 0;  ///< most of them that are needed at one launch
  int64_t staging_bytes = 0;
  LaunchOrder order = LaunchOrder::kChain;

  /// A module of one kernel: the preamble and its text.
  std::string ModuleText(size_t kernel) const;
  /// A module of all kernels.
  std::string ModuleText() const;
};

struct ProgramOptions {
  /// Values whose lifetimes do not overlap share memory, all in one allocation. False, for tests:
  /// every value and every constant is an allocation of exactly its size, so that accesses beyond
  /// it are seen.
  bool reuse_memory = true;
  LaunchOrder order = LaunchOrder::kChain;
  /// Launches that need not wait for each other share no memory, if all values then take at most so
  /// many times the memory. 0: memory is planned for launches in a row, so that a branch lies where
  /// another one did and waits for it.
  double apart_up_to = 0;
  Numerics numerics = Numerics::kDefault;
  /// By node, as in CompileOptions: calls of `libraries`, or "beside" (horizontal_fusion.h). Native
  /// kernels compute all other nodes.
  std::map<int32_t, std::string> algorithms = {};
  std::span<const CallLibrary* const> libraries = {};
  /// Engines by node, as in CompileOptions.
  EnginesByNode engines = {};
};

/// Folds what depends on no input (in double, rounded once), groups the rest into calls and
/// kernels, and plans memory. Unimplemented names the node that no kernel computes. InvalidArgument
/// names the node and an algorithm that no library has. kFaster is kChain here.
absl::StatusOr<DeviceProgram> LowerToDevice(const Graph& graph, const ProgramOptions& options = {});

/// The program in the order that `options` requests; for kFaster in all that differ, kChain first:
/// it takes the least memory or nearly so. Each has memory planned for its order. Texts, weights
/// and uploads are the first one's alone: kernels and constants (DeviceProgram::constants) are the
/// same in all.
absl::StatusOr<std::vector<DeviceProgram>> LowerInOrders(const Graph& graph,
                                                         const ProgramOptions& options);

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_BACKEND_PROGRAM_H_
