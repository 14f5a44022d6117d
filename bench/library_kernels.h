// oneDNN's primitives for operators of which the CPU backend has a kernel of its own by default,
// for comparison.
#ifndef MENDEL_BENCH_LIBRARY_KERNELS_H_
#define MENDEL_BENCH_LIBRARY_KERNELS_H_

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/graph.h"
#include "graph/tensor.h"

namespace mendel {

/// One primitive in one layout, with buffers of its own.
struct LibraryKernel {
  std::string name;                             ///< implementation and layout
  std::function<absl::StatusOr<double>()> run;  ///< seconds of one run
  std::function<Tensor()> output;               ///< output of the last run, row-major
};

/// For a graph of one node beside its inputs and constants: the node by oneDNN with values
/// row-major, channels-last and in blocks of 8 and 16 channels, reference code of oneDNN left out.
/// Empty where the backend itself uses oneDNN for the operator, or oneDNN has nothing that computes
/// it.
std::vector<LibraryKernel> LibraryKernelsFor(const Graph& graph, std::span<const Tensor> inputs,
                                             int threads);

}  // namespace mendel

#endif  // MENDEL_BENCH_LIBRARY_KERNELS_H_
