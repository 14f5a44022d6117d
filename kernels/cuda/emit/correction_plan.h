// Which Patches of a graph emitted kernels mend in place, and what of the graph nobody else has to compute then.
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
  Mending mending;
  std::vector<KernelShape> shapes;  ///< of mending.kernels
  /// The result takes the memory of `base`, which nobody reads afterwards. Else it is a copy of `base` before the first launch.
  bool in_place = false;
  std::set<int32_t> nodes;  ///< the Patch, and those of its pieces that nothing else needs

  ValueId result() const { return {patch, 0}; }
};

struct CorrectionPlan {
  std::vector<PlannedCorrection> corrections;  ///< by node
  std::map<int32_t, std::string> refused;      ///< Patches that no emitted kernel mends, and why
  std::vector<bool> unused;                    ///< by node: what only pieces of `corrections` needed, as graphs state them
  std::set<ValueId> stored;                    ///< values that the kernels read or overwrite
};

/// For every Patch of `graph` that depends on an input; `constant` says which nodes do not. Activations have the channels first. A
/// Patch is mended in place where its first input is computed here, is no output of the graph, is read by nothing else, and where
/// no kernel reads of it what another thread overwrites. The boxes of each kernel are held to a module's constant memory (ShapeOf).
CorrectionPlan PlanCorrections(const Graph& graph, const std::vector<bool>& constant);

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_EMIT_CORRECTION_PLAN_H_
