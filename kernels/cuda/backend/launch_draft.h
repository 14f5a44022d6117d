// Launches of a program before its memory is planned: what they read and write are values, and their order may still change.
#ifndef MENDEL_KERNELS_CUDA_BACKEND_LAUNCH_DRAFT_H_
#define MENDEL_KERNELS_CUDA_BACKEND_LAUNCH_DRAFT_H_

#include <set>
#include <span>
#include <vector>

#include "kernels/cuda/backend/program.h"
#include "kernels/cuda/fusion/kernel_code.h"

namespace mendel::cuda {

struct LaunchDraft {
  DeviceLaunch launch;                  ///< but for its pointers
  std::vector<KernelOperand> operands;  ///< what these refer to first
  std::vector<ValueId> results;         ///< and then
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

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_BACKEND_LAUNCH_DRAFT_H_
