// The launches of a correction: the corrector's emitted text, over the mutant's output where it
// lies.
#ifndef MENDEL_KERNELS_CUDA_BACKEND_CORRECTION_LAUNCH_H_
#define MENDEL_KERNELS_CUDA_BACKEND_CORRECTION_LAUNCH_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/graph.h"
#include "kernels/cuda/emit/correction_plan.h"
#include "kernels/cuda/emit/kernel_text.h"
#include "kernels/cuda/fusion/grouping.h"
#include "kernels/cuda/fusion/kernel_code.h"
#include "runtime/backend.h"

namespace mendel::cuda {

struct CorrectionLaunch {
  std::string kernel;  ///< name of the entry
  std::string text;
  LaunchShape shape;
  std::vector<KernelOperand>
      operands;    ///< what its pointers refer to; one more follows, to the result
  ValueId result;  ///< the correction's result or its scratch buffer
  Step info;
};

/// The scratch buffer between the launches of a correction, as a value that the graph does not
/// have.
inline ValueId ScratchOf(const PlannedCorrection& correction) { return {correction.patch, 1}; }
/// 0 where none is needed.
int64_t ScratchBytes(const Graph& graph, const PlannedCorrection& correction);

/// The launches of `correction` in order: where it is not in place, a copy of its base; then its
/// kernels, whose text is EmitKernel's. `folded` gives the elements of a value that depends on no
/// input. The last launch computes `copy`, too, where it is not null: what CorrectionOver says that
/// the correction takes along.
absl::StatusOr<std::vector<CorrectionLaunch>> LaunchesOf(
    const Graph& graph, const PlannedCorrection& correction,
    const std::function<Tensor(ValueId)>& folded, const FusionGroup* copy = nullptr);

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_BACKEND_CORRECTION_LAUNCH_H_
