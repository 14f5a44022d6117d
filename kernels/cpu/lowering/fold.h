// Values that do not depend on the graph's inputs.
#ifndef MENDEL_KERNELS_CPU_LOWERING_FOLD_H_
#define MENDEL_KERNELS_CPU_LOWERING_FOLD_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "graph/evaluate.h"
#include "graph/graph.h"
#include "kernels/cpu/lowering/fold_cache.h"
#include "kernels/cpu/memory/weight_view.h"

namespace mendel::cpu {

/// Evaluates weight-only expressions on demand, in double, each rounded once to its dtype. Results
/// with equal content share their bytes. The graph must outlive this object. Not thread-safe.
class Folded {
 public:
  explicit Folded(const Graph& graph);

  bool IsConstant(ValueId value) const { return constant_[static_cast<size_t>(value.node)]; }
  /// The value in its dtype; stored Constants are returned as they are.
  const Tensor& Rounded(ValueId value);
  /// The value before rounding.
  HostValue Exact(ValueId value);
  /// Returns the same of a float value, where it lies: in the graph, in this object, or in the
  /// view's own memory. Any thread may read it.
  WeightView View(ValueId value);

 private:
  FoldedValues Evaluated(int32_t node);
  FoldedValues EvaluateNow(int32_t node);
  /// The node's expression and the addresses of its stored tensors; "" where nothing is kept from
  /// program to program, or the value is small.
  std::string CacheKey(ValueId value);
  const std::string& KeyOf(int32_t node);
  std::vector<Tensor> SourcesOf(int32_t node) const;

  const Graph& graph_;
  std::vector<bool> constant_;
  std::map<int32_t, FoldedValues> evaluated_;
  std::map<int32_t, std::string> keys_;
  std::map<ValueId, Tensor> rounded_;
  std::map<std::string, Tensor> by_content_;
};

}  // namespace mendel::cpu

#endif  // MENDEL_KERNELS_CPU_LOWERING_FOLD_H_
