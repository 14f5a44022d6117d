#include <set>
#include <utility>

#include "base/check.h"
#include "base/status.h"
#include "verifier/field_evaluator.h"

namespace mendel {
namespace {

bool IsTerminal(const Node& node) { return IsInput(node) || IsConstant(node); }

/// Values of one graph under one draw, with the number of reads still to come.
class ValueWalk {
 public:
  ValueWalk(const Graph& graph, const Draw& draw, WeightMode weights, InputNaming naming,
            const ValueVisitor& visit)
      : graph_(graph), evaluator_(draw, weights), naming_(naming), visit_(visit) {
    for (const Node& node : graph.nodes()) {
      values_.emplace_back(node.outputs.size());
      reads_.push_back(0);
      for (ValueId input : node.inputs) ++reads_[Index(input.node)];
    }
    for (const GraphOutput& output : graph.outputs()) ++reads_[Index(output.value.node)];
  }

  absl::Status Run(const Deadline& deadline) {
    for (size_t i = 0; i < values_.size(); ++i) {
      if (IsTerminal(graph_.nodes()[i])) continue;
      if (deadline.Passed()) return absl::DeadlineExceededError("evaluation ran out of time");
      MENDEL_RETURN_IF_ERROR(Compute(static_cast<int32_t>(i)));
    }
    for (const GraphOutput& output : graph_.outputs()) Read(output.value);
    return absl::OkStatus();
  }

 private:
  static size_t Index(int32_t node) { return static_cast<size_t>(node); }

  const FieldValue& Read(ValueId value) {
    std::vector<FieldValue>& values = values_[Index(value.node)];
    const Node& node = graph_.node(value.node);
    if (IsTerminal(node) && !drawn_.contains(value.node)) {
      drawn_.insert(value.node);
      values[0] = IsInput(node) ? Input(value.node) : evaluator_.Constant(node);
      visit_({value.node, 0}, values[0]);
    }
    return values[Index(value.output)];
  }

  FieldValue Input(int32_t id) const {
    if (naming_ == InputNaming::kByName) return evaluator_.Input(graph_.node(id));
    size_t position = 0;
    while (graph_.inputs()[position] != id) ++position;
    return evaluator_.Symbol("position", Cat(position), NumElements(graph_.node(id).outputs[0]));
  }

  absl::Status Compute(int32_t id) {
    const Node& node = graph_.node(id);
    std::vector<const FieldValue*> operands;
    for (ValueId value : node.inputs) operands.push_back(&Read(value));
    WithView(graph_, id, [&](const NodeView& view) {
      for (size_t k = 0; k < node.outputs.size(); ++k) {
        FieldValue& value = values_[Index(id)][k] =
            evaluator_.Apply(*node.op, view, operands, static_cast<int>(k));
        if (!evaluator_.zero_denominator()) visit_({id, static_cast<int32_t>(k)}, value);
      }
    });
    if (evaluator_.zero_denominator())
      return absl::AbortedError(
          Cat("a denominator is zero in node ", id, " (", node.op->name, ")"));
    for (ValueId value : node.inputs) {
      if (--reads_[Index(value.node)] > 0) continue;
      for (FieldValue& done : values_[Index(value.node)]) done = FieldValue();
    }
    if (reads_[Index(id)] == 0) values_[Index(id)].clear();
    return absl::OkStatus();
  }

  const Graph& graph_;
  const FieldEvaluator evaluator_;
  const InputNaming naming_;
  const ValueVisitor& visit_;
  std::vector<std::vector<FieldValue>> values_;
  std::vector<int64_t> reads_;  // reads of all outputs of a node together
  std::set<int32_t> drawn_;
};

}  // namespace

absl::Status EvaluateValues(const Graph& graph, const Draw& draw, WeightMode weights,
                            InputNaming naming, const Deadline& deadline,
                            const ValueVisitor& visit) {
  return ValueWalk(graph, draw, weights, naming, visit).Run(deadline);
}

absl::StatusOr<std::vector<std::vector<Fp>>> EvaluateOutputs(const Graph& graph, const Draw& draw,
                                                             WeightMode weights, InputNaming naming,
                                                             const Deadline& deadline) {
  const PrimeField field(draw.prime);
  std::vector<std::vector<Fp>> outputs(graph.outputs().size());
  const auto visit = [&](ValueId id, const FieldValue& value) {
    const FieldScope scope(field);
    for (size_t k = 0; k < outputs.size(); ++k) {
      if (graph.outputs()[k].value != id) continue;
      outputs[k].resize(static_cast<size_t>(value.size()));
      for (int64_t i = 0; i < value.size(); ++i) outputs[k][static_cast<size_t>(i)] = value.At(i);
    }
  };
  MENDEL_RETURN_IF_ERROR(EvaluateValues(graph, draw, weights, naming, deadline, visit));
  return outputs;
}

}  // namespace mendel
