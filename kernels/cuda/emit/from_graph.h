// From a corrected mutant, Patch(mutant, pieces...){boxes}, to the corrections that its pieces are.
#ifndef MENDEL_KERNELS_CUDA_EMIT_FROM_GRAPH_H_
#define MENDEL_KERNELS_CUDA_EMIT_FROM_GRAPH_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/graph.h"
#include "kernels/cuda/emit/correction.h"

namespace mendel::cuda {

/// A tensor that a kernel reads or writes: a value of the graph, or the scratch buffer between the
/// convolutions of a chain.
struct Operand {
  bool scratch = false;
  ValueId value;
  auto operator<=>(const Operand&) const = default;
};

struct PatchKernel {
  Correction correction;
  Operand x;
  ValueId w;     ///< node -1: none, since it totals a divided sum
  ValueId bias;  ///< node -1: none. Read as a flat row of channels
  std::vector<Operand> operands;
  Operand y;  ///< the Patch's first input, which is overwritten in place, or scratch
};

struct PatchKernels {
  std::vector<PatchKernel> kernels;  ///< in the order of their launches; one a mutant unless
                                     ///< pieces are chains or sums are divided
  int64_t scratch_elements = 0;
};

/// The kernels that do what node `patch` (a Patch) does, sums divided where that pays
/// (divided_sum.h). Pieces are convolutions of one activation with bias, additions and activations
/// after them, or chains of those; all boxes that differ in nothing but their place share a launch.
/// Unimplemented names the node that no kernel computes.
absl::StatusOr<PatchKernels> PatchKernelsOf(const Graph& graph, int32_t patch, Layout layout);

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_EMIT_FROM_GRAPH_H_
