// Corrected mutants for the tests of this folder: drawn at random, run on a device, compared with
// their meaning element by element.
#ifndef MENDEL_KERNELS_CUDA_TESTING_CORRECTION_CASE_H_
#define MENDEL_KERNELS_CUDA_TESTING_CORRECTION_CASE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/random.h"
#include "graph/evaluate.h"
#include "graph/graph.h"
#include "kernels/cuda/device.h"
#include "kernels/cuda/emit/from_graph.h"
#include "kernels/cuda/emit/kernel_text.h"

namespace mendel::cuda {

/// A graph with one Patch, whose base is an Input (the mutant's output: any numbers, so that what
/// must stay is seen to stay).
struct CorrectionCase {
  uint64_t seed = 0;
  std::string description;  ///< seed, shapes, boxes
  Graph graph;
  Layout layout = Layout::kNchw;
  PatchKernels patch_kernels;
  std::vector<EmittedKernel> kernels;  ///< of correction.kernels
  bool exact = true;                   ///< small integers throughout: sums round nowhere
};

/// The kernels of the only Patch in `graph`, their names beginning with `prefix`. A null tile: the
/// one that ChooseTile takes.
absl::StatusOr<CorrectionCase> MakeCase(const Graph& graph, Layout layout,
                                        const std::string& prefix, const Tile* tile = nullptr);

/// Convolutions in one to three dimensions, groups, strides, dilations, asymmetric padding,
/// batches, channel boxes, chains, recomputed or added to the mutant's output; both layouts, the
/// three types, all tiles.
CorrectionCase RandomCase(uint64_t seed);

/// The same with the sums of every kernel divided into `parts` parts, and `prefix` before the
/// kernels' names.
CorrectionCase WithDividedSums(CorrectionCase one, int parts, const std::string& prefix);

/// A convolution of (batch, channels, extents...) with these boxes wrong, bias, an addition and a
/// Relu after it.
struct ConvShape {
  Shape x, w;
  int64_t group = 1;
  Ints strides, dilations, pads;
  DType dtype = DType::kF32;
};
Graph CorrectedConv(const ConvShape& shape, const std::vector<Box>& boxes);

/// `corrected` with its mutant, an Input, negated first, so that it is computed and can be
/// overwritten in place.
Graph WithComputedMutant(const Graph& corrected);

/// Small integers for every Input, from `seed`.
std::vector<HostValue> SmallInputs(const Graph& graph, uint64_t seed);

/// The elements of a value in the layout's order.
std::vector<double> InLayout(const HostValue& value, Layout layout);
/// All values of all nodes, by node.
std::vector<std::vector<HostValue>> EvaluateAll(const Graph& graph,
                                                std::span<const HostValue> inputs);

/// Runs the kernels of `one` on `module` over the mutant's output; where `misaligned`, every
/// pointer lies one element beyond an aligned address. Aborted with the seed and the first wrong
/// element, or what the device reports.
absl::Status RunCase(const CorrectionCase& one, Module& module, bool misaligned = false);

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_TESTING_CORRECTION_CASE_H_
