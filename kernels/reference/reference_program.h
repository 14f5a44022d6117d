// Graphs run by their operators' own definitions, in double precision: the oracle that fast
// backends and plans are compared with.
#ifndef MENDEL_KERNELS_REFERENCE_REFERENCE_PROGRAM_H_
#define MENDEL_KERNELS_REFERENCE_REFERENCE_PROGRAM_H_

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/evaluate.h"
#include "graph/graph.h"

namespace mendel {

/// A graph with its weight-only expressions evaluated once. Immutable, safe to run from several
/// threads at a time. Uses the process-wide number of threads (base/parallel.h).
class ReferenceProgram {
 public:
  explicit ReferenceProgram(Graph graph);

  /// The graph's outputs in order, from inputs in the order of graph.inputs() (InvalidArgument when
  /// their number or types are wrong). Nothing is rounded between nodes; values are freed after
  /// their last use. `seconds`, when not null, receives the wall time of each of steps().
  absl::StatusOr<std::vector<HostValue>> Run(std::span<const HostValue> inputs,
                                             std::vector<double>* seconds = nullptr) const;

  const Graph& graph() const { return graph_; }
  /// The nodes that Run evaluates, in order.
  const std::vector<int32_t>& steps() const { return steps_; }
  /// Bytes of the evaluated weights.
  int64_t weight_bytes() const;

 private:
  using Values = std::vector<std::vector<HostValue>>;  ///< by node and output; empty where not (or
                                                       ///< no longer) needed

  /// The tensor of `value`, from the inputs, the weights or `values`.
  const HostValue& Find(ValueId value, std::span<const HostValue> inputs,
                        const Values& values) const;
  std::vector<HostValue> EvaluateAt(int32_t id, std::span<const HostValue> inputs,
                                    const Values& values) const;

  Graph graph_;
  std::vector<int32_t> steps_;
  std::vector<int> input_position_;  ///< by node; -1 when it is no input
  std::vector<bool> constant_;       ///< by node: depends on no input
  std::vector<int32_t> last_use_;    ///< by node; -1 when no step reads it
  Values weights_;
};

/// One run of a graph, see ReferenceProgram.
absl::StatusOr<std::vector<HostValue>> EvaluateReference(const Graph& graph,
                                                         std::span<const HostValue> inputs);

}  // namespace mendel

#endif  // MENDEL_KERNELS_REFERENCE_REFERENCE_PROGRAM_H_
