// A correction plan lists the Patches of a graph that emitted kernels correct in place, and the
// nodes that nothing else has to compute then.
#ifndef MENDEL_KERNELS_CUDA_EMIT_CORRECTION_PLAN_H_
#define MENDEL_KERNELS_CUDA_EMIT_CORRECTION_PLAN_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "kernels/cuda/emit/from_graph.h"
#include "kernels/cuda/emit/kernel_text.h"

namespace mendel::cuda {

/// One Patch whose boxes are computed by emitted kernels alone.
struct PlannedCorrection {
  int32_t patch = -1;
  ValueId base;  ///< the mutant's output, the Patch's first input
  PatchKernels patch_kernels;
  std::vector<KernelShape> shapes;  ///< shapes of correction.kernels
  /// The result takes the memory of `base`, which nobody reads afterwards. Else it is a copy of
  /// `base` before the first launch.
  bool in_place = false;
  std::set<int32_t> nodes;  ///< the Patch, and those of its pieces that nothing else needs

  ValueId result() const { return {patch, 0}; }
};

struct CorrectionPlan {
  std::vector<PlannedCorrection> corrections;  ///< by node
  std::map<int32_t, std::string> refused;      ///< Patches that no emitted kernel corrects, and why
  std::vector<bool>
      unused;  ///< by node: what only pieces of `corrections` needed, as graphs state them
  std::set<ValueId> stored;  ///< values that the kernels read or overwrite
};

/// Plans every Patch of `graph` that depends on an input; `constant` marks the nodes that do not.
/// Activations have the channels first. A Patch is corrected in place where its first input is
/// computed here, is no output of the graph, and has no other reader. Besides, no kernel may read
/// an element of it that another thread overwrites. The boxes of each kernel must fit into a
/// module's constant memory (ShapeOf).
CorrectionPlan PlanCorrections(const Graph& graph, const std::vector<bool>& constant);

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_EMIT_CORRECTION_PLAN_H_
