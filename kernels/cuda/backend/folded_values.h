// The elements of values that depend on no input.
#ifndef MENDEL_KERNELS_CUDA_BACKEND_FOLDED_VALUES_H_
#define MENDEL_KERNELS_CUDA_BACKEND_FOLDED_VALUES_H_

#include <cstdint>
#include <map>
#include <vector>

#include "graph/evaluate.h"
#include "graph/graph.h"

namespace mendel::cuda {

/// Computes them in double, rounded once, each node at most once. `graph` must outlive it. Not
/// thread-safe.
class FoldedValues {
 public:
  explicit FoldedValues(const Graph& graph) : graph_(graph) {}
  Tensor Of(ValueId value);

 private:
  const std::vector<HostValue>& Evaluated(int32_t id);

  const Graph& graph_;
  std::map<int32_t, std::vector<HostValue>> evaluated_;
};

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_BACKEND_FOLDED_VALUES_H_
