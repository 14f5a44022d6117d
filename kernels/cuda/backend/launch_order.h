// The dependencies between a program's launches, by the memory that they read and write.
#ifndef MENDEL_KERNELS_CUDA_BACKEND_LAUNCH_ORDER_H_
#define MENDEL_KERNELS_CUDA_BACKEND_LAUNCH_ORDER_H_

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/cuda/backend/program.h"

namespace mendel::cuda {

/// The memory that a piece of work reads and writes.
struct MemoryUse {
  std::vector<DeviceBuffer> reads, writes;
};
MemoryUse UseOf(const DeviceLaunch& launch);
std::vector<MemoryUse> UsesOfLaunches(const DeviceProgram& program);
/// All pieces of a run: copies in, launches, copies out.
std::vector<MemoryUse> UsesOfRun(const DeviceProgram& program);
/// True when one of the two writes what the other reads or writes, so that their order matters.
bool Conflict(const MemoryUse& a, const MemoryUse& b);

/// Lists, for each piece of work, the earlier ones that it waits for.
using Dependencies = std::vector<std::vector<size_t>>;

/// The fewest dependencies that keep conflicting pieces in their order: none follows from others.
/// Takes time and memory (bits) in the square of the number of pieces.
Dependencies DependenciesOf(std::span<const MemoryUse> work);
/// True when each piece waits for the one before it, so that nothing can run side by side.
bool IsChain(const Dependencies& dependencies);
/// The same pieces between a first one, which all wait for, and a last one, which waits for all.
Dependencies Framed(const Dependencies& dependencies);

/// The size of the largest level: pieces with as many others before them one after the other, which
/// nothing orders.
size_t MostSideBySide(const Dependencies& dependencies);

/// For people: "in the order of the plan", "depth first", "up to 3 side by side".
std::string OrderReported(const DeviceProgram& program);

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_BACKEND_LAUNCH_ORDER_H_
