// Evaluation of graphs by the operators' own definitions, in double precision and exact integers.
//
// This is the slow, obvious interpreter. Constant folding and small tests use it directly; backends
// and the verifier are compared with it. Float values are stored as doubles and not rounded between
// nodes.
#ifndef MENDEL_GRAPH_EVALUATE_H_
#define MENDEL_GRAPH_EVALUATE_H_

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/graph.h"
#include "graph/tensor.h"

namespace mendel {

/// One value: doubles for float dtypes, exact integers for the others (bool as 0 and 1,
/// u64 modulo 2^64).
struct HostValue {
  TensorType type;
  std::vector<double> scalars;
  std::vector<int64_t> integers;

  static HostValue FromTensor(const Tensor& tensor);
  /// Rounds into the dtype.
  Tensor ToTensor() const;
  /// Elements as doubles, whatever the dtype; numbers of u64 from 2^63 on are negative, as in
  /// `integers`.
  double At(int64_t flat) const {
    return IsFloat(type.dtype) ? scalars[static_cast<size_t>(flat)]
                               : static_cast<double>(integers[static_cast<size_t>(flat)]);
  }
};

/// |a - b| of one element of two values of one type; exact before the last rounding for integers.
double ElementDistance(const HostValue& a, const HostValue& b, int64_t flat);

/// The outputs of one node by its operator's definition.
std::vector<HostValue> EvaluateNode(const OpDefinition& op, const NodeView& node,
                                    std::span<const HostValue* const> inputs);

/// The graph's outputs in order. `inputs` in the order of graph.inputs(), of the right types
/// (InvalidArgument otherwise). Values are freed after their last use.
absl::StatusOr<std::vector<HostValue>> Evaluate(const Graph& graph,
                                                std::span<const HostValue> inputs);

/// Evaluate, with every node's outputs from `evaluate` in place of EvaluateNode.
using NodeEvaluation = std::function<std::vector<HostValue>(
    const OpDefinition& op, const NodeView& node, std::span<const HostValue* const> inputs)>;
absl::StatusOr<std::vector<HostValue>> EvaluateWith(const Graph& graph,
                                                    std::span<const HostValue> inputs,
                                                    const NodeEvaluation& evaluate);

}  // namespace mendel

#endif  // MENDEL_GRAPH_EVALUATE_H_
