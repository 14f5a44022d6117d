// Launches of a program before its memory is planned: what they read and write are values, and their order may still change.
#ifndef MENDEL_KERNELS_CUDA_BACKEND_LAUNCH_DRAFT_H_
#define MENDEL_KERNELS_CUDA_BACKEND_LAUNCH_DRAFT_H_

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

struct LaunchDraft {
  DeviceLaunch launch;                  ///< but for its pointers
  std::vector<KernelOperand> operands;  ///< what these refer to first
  std::vector<ValueId> results;         ///< and then
  std::string text = "";                ///< of the kernel
  /// Set where the kernel may stand beside others: what it computes.
  std::optional<FusionGroup> beside = std::nullopt;
};

/// What a draft reads and writes, by the values in whose memory that lies; without constants.
struct ValueUse {
  std::set<ValueId> reads, writes;
};
/// True when their order matters.
bool Conflict(const ValueUse& a, const ValueUse& b);

/// For each draft, in an order that computes what is meant, the launches that have to come before it one after the other: those of
/// one level can run side by side.
std::vector<int> LevelsOf(std::span<const ValueUse> drafts);

/// The drafts in another order that computes what is meant: each comes right after those that had to come before it and were not
/// there yet, these, and those that nothing follows, in their own order.
std::vector<size_t> DepthFirst(std::span<const ValueUse> drafts);

/// Of one launch.
struct JoinLimits {
  size_t drafts = 0;
  size_t pointers = 0;
};

/// Launches in an order that computes what is meant: each a draft or, of those that may join, several between which no order
/// matters, within the limits. `pointers`: of each draft's kernel; 0: it may not join. A draft joins an earlier one where it can
/// move up to it, or that one down, past everything in between; pairs further apart than a few dozen launches are not looked at.
std::vector<std::vector<size_t>> JoinDrafts(std::span<const ValueUse> drafts, std::span<const size_t> pointers, JoinLimits most);

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_BACKEND_LAUNCH_DRAFT_H_
