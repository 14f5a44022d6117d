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
  DeviceLaunch launch;                  ///< the launch, with its pointers still unset
  std::vector<KernelOperand> operands;  ///< the pointers begin with one for each operand
  std::vector<ValueId> results;         ///< then follows one pointer for each result
  std::string text = "";                ///< text of the kernel
  /// Set where the kernel may be fused horizontally with others: what it computes.
  std::optional<FusionGroup> horizontal_fusion = std::nullopt;
};

/// The values that a node reads and writes. A view counts as the value whose memory it uses.
/// Constants are left out.
struct ValueUse {
  std::set<ValueId> reads, writes;
};
/// True if one of the two writes a value that the other reads or writes.
bool Conflict(const ValueUse& a, const ValueUse& b);

/// The level of each node: how many launches must come before it, one after the other. The nodes
/// are in an order that is correct. Those of one level can run side by side.
std::vector<int> LevelsOf(std::span<const ValueUse> nodes);

/// Orders the nodes depth first. Each node comes right after those of its predecessors that have no
/// place yet. Predecessors of one node, and nodes without a successor, keep their order.
std::vector<size_t> DepthFirst(std::span<const ValueUse> nodes);

/// The limits of one launch.
struct JoinLimits {
  size_t nodes = 0;
  size_t pointers = 0;
};

/// Groups nodes into launches, in an order with equal results. Independent nodes share a launch
/// within the limits. `pointers` counts the pointers of each kernel; 0 means that the node stays
/// alone. Two nodes join if one of them can move to the other. Distant pairs are not considered.
std::vector<std::vector<size_t>> JoinNodes(std::span<const ValueUse> nodes,
                                           std::span<const size_t> pointers, JoinLimits most);

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_BACKEND_LAUNCH_NODE_H_
