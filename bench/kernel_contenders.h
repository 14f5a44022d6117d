// The ways in which the CPU backend and oneDNN can compute one layer, checked against the
// operators' definitions.
#ifndef MENDEL_BENCH_KERNEL_CONTENDERS_H_
#define MENDEL_BENCH_KERNEL_CONTENDERS_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/evaluate.h"
#include "graph/graph.h"
#include "graph/tensor.h"
#include "runtime/backend.h"
#include "runtime/numerics.h"

namespace mendel {

/// A layer with its inputs and its output by definition, in double.
struct CheckedLayer {
  Graph graph;
  std::vector<Tensor> inputs;
  HostValue output;
};
absl::StatusOr<CheckedLayer> CheckLayer(Graph graph);

struct RunSeconds {
  double kernels = 0;  ///< of the steps that compute nodes
  double whole = 0;    ///< with what converts layouts before and after them
};

struct Contender {
  std::string name;  ///< name of the algorithm; of a default, its kernels
  std::string kernels;
  Numerics numerics = Numerics::kDefault;  ///< the strictest class that offers it
  bool own = false;
  double error = 0;  ///< the output's largest, relative to its largest element
  bool Right() const;
  std::function<absl::StatusOr<RunSeconds>()> run;
};

/// oneDNN's default and other algorithms, and own ones, those of any node of the layer whose names
/// `wanted` takes; where the default is a native kernel, oneDNN's primitives beside it
/// (library_kernels.h). Own algorithms that gave way to a default are left out. Each has run once.
/// `layer` must outlive them.
absl::StatusOr<std::vector<Contender>> MakeContenders(
    const Backend& backend, const CheckedLayer& layer, int threads,
    const std::function<bool(const std::string&)>& wanted);

}  // namespace mendel

#endif  // MENDEL_BENCH_KERNEL_CONTENDERS_H_
