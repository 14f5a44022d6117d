// A launch node is a launch of a program before its memory is planned. It reads and writes values,
// and its order may still change.
#ifndef MENDEL_KERNELS_CUDA_BACKEND_LAUNCH_NODE_H_
#define MENDEL_KERNELS_CUDA_BACKEND_LAUNCH_NODE_H_

#include <cstddef>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "kernels/cuda/backend/program.h"
#include "kernels/cuda/fusion/grouping.h"
#include "kernels/cuda/fusion/kernel_code.h"

namespace mendel::cuda {

struct LaunchNode {
  DeviceLaunch launch;                  ///< but for its pointers
  std::vector<KernelOperand> operands;  ///< what these refer to first
  std::vector<ValueId> results;         ///< and then
  std::string text = "";                ///< text of the kernel
  /// Set where the kernel may be fused horizontally with others: what it computes.
  std::optional<FusionGroup> horizontal_fusion = std::nullopt;
};

/// The values that a node reads and writes, by the value in whose memory each lies; no constants.
struct ValueUse {
  std::set<ValueId> reads, writes;
};
/// True when their order matters.
bool Conflict(const ValueUse& a, const ValueUse& b);

/// The level of each node: how many launches must come before it, one after the other. The nodes
/// are in an order that is correct. Those of one level can run side by side.
std::vector<int> LevelsOf(std::span<const ValueUse> nodes);

/// The nodes depth first: each comes right after the nodes that it waits for and that were not
/// there yet. These, and the nodes that nothing follows, keep their own order. The result computes
/// the same.
std::vector<size_t> DepthFirst(std::span<const ValueUse> nodes);

/// The limits of one launch.
struct JoinLimits {
  size_t nodes = 0;
  size_t pointers = 0;
};

/// Launches in an order that computes the same: one node each, or several unordered nodes that may
/// join, within the limits. `pointers`: of each node's kernel; 0: the node may not join. A node
/// joins an earlier one where either can move to the other past everything in between. Pairs more
/// than a few dozen launches apart are left out.
std::vector<std::vector<size_t>> JoinNodes(std::span<const ValueUse> nodes,
                                           std::span<const size_t> pointers, JoinLimits most);

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_BACKEND_LAUNCH_NODE_H_
