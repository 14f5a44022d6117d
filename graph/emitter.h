// A builder that reads like algebra: the first error sticks and is reported once, by Finish().
#ifndef MENDEL_GRAPH_EMITTER_H_
#define MENDEL_GRAPH_EMITTER_H_

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/graph.h"

namespace mendel {

/// Emits nodes without a status after each. After an error every call returns a placeholder value
/// whose type has rank kMaxRank, so that callers may go on; nothing of that reaches a graph,
/// because Finish() returns the error.
class Emitter {
 public:
  explicit Emitter(std::string name = "");
  ~Emitter();

  /// The inputs of `like`, same names and types, in order.
  std::vector<ValueId> InputsOf(const Graph& like);
  /// `value` of `graph` and all it depends on, where that is weights only.
  ValueId CopyConstantExpression(const Graph& graph, ValueId value);
  /// All nodes of `graph` but its Inputs, which `inputs` stand for; returns its outputs.
  std::vector<ValueId> Inline(const Graph& graph, const std::vector<ValueId>& inputs);
  ValueId Input(std::string name, TensorType type);
  ValueId Constant(Tensor value, std::string symbol = "");

  ValueId Op(std::string_view op, std::vector<ValueId> inputs, Attributes attrs = {},
             std::string name = "");
  /// All outputs of a node with `count` outputs.
  std::vector<ValueId> Ops(std::string_view op, std::vector<ValueId> inputs, size_t count,
                           Attributes attrs = {});

  ValueId Reshape(ValueId x, Shape shape);
  ValueId Transpose(ValueId x, Ints perm);
  ValueId Concat(std::vector<ValueId> values, int64_t axis);
  /// Positions [begin, end) along `axis`, every `step`-th.
  ValueId Slice(ValueId x, int64_t axis, int64_t begin, int64_t end, int64_t step = 1);
  /// The box of `x`.
  ValueId Cut(ValueId x, const Box& box);
  /// `before` and `after` zeros along `axis`; nothing is emitted when both are 0.
  ValueId PadZero(ValueId x, int64_t axis, int64_t before, int64_t after);
  ValueId MatMul(ValueId a, ValueId b);
  ValueId Add(ValueId a, ValueId b);
  ValueId Mul(ValueId a, ValueId b);

  const Shape& shape(ValueId value) const { return type(value).shape; }
  const TensorType& type(ValueId value) const;
  void Output(std::string name, ValueId value);
  /// Records `status` when it is the first error.
  void Fail(absl::Status status);
  /// The graph, or the first error. The emitter is spent.
  absl::StatusOr<Graph> Finish();

 private:
  GraphBuilder builder_;
  absl::Status status_;
  std::vector<std::pair<std::string, ValueId>> outputs_;
};

}  // namespace mendel

#endif  // MENDEL_GRAPH_EMITTER_H_
