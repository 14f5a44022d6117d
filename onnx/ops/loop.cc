// Loop whose number of steps follows from constants: as the operator Loop where the body reads its
// number only to take slices or as a float, else step by step.

#include "graph/loop.h"

#include <map>
#include <set>
#include <utility>

#include "onnx/op_context.h"
#include "onnx/ops/steps.h"

namespace mendel::lowerings::loop {
namespace {

using Values = std::vector<ValueId>;

/// Copies an imported body without its number and condition. What reads the number becomes a
/// scanned input: Gather(invariant, number) and Cast(number).
class WithoutNumber {
 public:
  /// The body's first inputs are the number, the condition and `carried` states.
  WithoutNumber(OpContext& op, const ImportedBody& imported, size_t carried, int64_t steps)
      : op_(op), body_(imported.body), carried_(carried), steps_(steps) {
    const std::vector<int32_t>& inputs = body_.inputs();
    number_.insert(inputs[0]);
    for (size_t k = 0; k < imported.invariants.size(); ++k)
      outer_[inputs[2 + carried + k]] = imported.invariants[k];
  }

  /// The results of the loop: states, then scanned outputs.
  absl::StatusOr<Values> Emit(const Values& state) {
    for (size_t k = 0; k < carried_; ++k) {
      const int32_t id = body_.inputs()[2 + k];
      copies_[id] = {builder_.Input("", body_.node(id).outputs[0])};
    }
    MENDEL_RETURN_IF_ERROR(FindSlices());
    for (const auto& [id, value] : outer_)
      copies_[id] = {builder_.Input("", body_.node(id).outputs[0])};
    for (size_t i = 0; i < body_.nodes().size(); ++i)
      MENDEL_RETURN_IF_ERROR(Copy(static_cast<int32_t>(i)));
    for (size_t k = 1; k < body_.outputs().size(); ++k) {
      MENDEL_ASSIGN_OR_RETURN(const ValueId value, Copied(body_.outputs()[k].value));
      builder_.Output("", value);
    }
    MENDEL_ASSIGN_OR_RETURN(const Graph copied, builder_.Build());
    LoopOperands operands{state, carried_, scanned_.size(), steps_, false};
    operands.values.insert(operands.values.end(), scanned_.begin(), scanned_.end());
    for (const auto& [id, value] : outer_) operands.values.push_back(value);
    return EmitLoop(op_, copied, operands);
  }

 private:
  /// Makes the inputs that stand for slices and numbers, before those for invariants.
  absl::Status FindSlices() {
    for (size_t i = 0; i < body_.nodes().size(); ++i) {
      const int32_t id = static_cast<int32_t>(i);
      const Node& node = body_.nodes()[i];
      if (node.op->name == "Reshape" && number_.count(node.inputs[0].node) != 0) number_.insert(id);
      if (node.op->name == "Gather" && number_.count(node.inputs[1].node) != 0 &&
          outer_.count(node.inputs[0].node) != 0)
        MENDEL_RETURN_IF_ERROR(AddSlice(id));
      if (node.op->name == "Cast" && number_.count(node.inputs[0].node) != 0 &&
          IsFloat(node.outputs[0].dtype))
        MENDEL_RETURN_IF_ERROR(AddCount(id));
    }
    return absl::OkStatus();
  }

  absl::Status AddSlice(int32_t id) {
    const Node& node = body_.node(id);
    ValueId all = outer_[node.inputs[0].node];
    const int64_t axis = node.attrs.Int("axis"), rank = op_.rank(all);
    if (op_.shape(all)[static_cast<size_t>(axis)] < steps_)
      return Unsupported("fewer slices than steps");
    Ints perm = {axis};
    for (int64_t d = 0; d < rank; ++d) {
      if (d != axis) perm.push_back(d);
    }
    MENDEL_ASSIGN_OR_RETURN(all, op_.Transpose(all, perm));
    if (op_.shape(all)[0] > steps_) {
      MENDEL_ASSIGN_OR_RETURN(all, Slices(op_, all, 0, steps_));
    }
    return AddScanned(id, all);
  }

  absl::Status AddCount(int32_t id) {
    std::vector<double> numbers;
    for (int64_t k = 0; k < steps_; ++k) numbers.push_back(static_cast<double>(k));
    const DType dtype = body_.node(id).outputs[0].dtype;
    return AddScanned(id, op_.Literal(Tensor::FromDoubles({dtype, {steps_}}, numbers)));
  }

  /// Node `id` of the body is a slice of `all`, in another shape.
  absl::Status AddScanned(int32_t id, ValueId all) {
    TensorType slice = op_.type(all);
    slice.shape.erase(slice.shape.begin());
    const Shape& wanted = body_.node(id).outputs[0].shape;
    ValueId value = builder_.Input("", slice);
    if (slice.shape != wanted) {
      MENDEL_ASSIGN_OR_RETURN(value, builder_.Add("Reshape", {value}, {{"shape", Ints(wanted)}}));
    }
    copies_[id] = {value};
    scanned_.push_back(all);
    return absl::OkStatus();
  }

  absl::Status Copy(int32_t id) {
    const Node& node = body_.node(id);
    if (IsInput(node) || copies_.count(id) != 0 || number_.count(id) != 0) return absl::OkStatus();
    Values inputs;
    for (const ValueId value : node.inputs) {
      MENDEL_ASSIGN_OR_RETURN(inputs.emplace_back(), Copied(value));
    }
    MENDEL_ASSIGN_OR_RETURN(const int32_t copy, builder_.CopyNode(node, std::move(inputs)));
    for (size_t k = 0; k < node.outputs.size(); ++k)
      copies_[id].push_back({copy, static_cast<int32_t>(k)});
    return absl::OkStatus();
  }

  absl::StatusOr<ValueId> Copied(ValueId value) const {
    const auto found = copies_.find(value.node);
    if (found == copies_.end()) return Unsupported("the body reads its number or condition");
    return found->second[static_cast<size_t>(value.output)];
  }

  OpContext& op_;
  const Graph& body_;
  const size_t carried_;
  const int64_t steps_;
  std::set<int32_t> number_;          ///< nodes of the body with the number's value
  std::map<int32_t, ValueId> outer_;  ///< by input of the body: the value around it
  std::map<int32_t, Values> copies_;  ///< by node of the body
  GraphBuilder builder_;
  Values scanned_;
};

/// True when a condition that a body computes holds in every step.
bool AlwaysTrue(const Graph& body, ValueId condition) {
  if (condition.node == body.inputs()[1]) return true;
  const Node& node = body.node(condition.node);
  return IsConstant(node) && ConstantValue(node).size() == 1 &&
         ConstantValue(node).DoubleAt(0) != 0;
}

absl::StatusOr<Values> AsLoop(OpContext& op, const onnx::GraphProto& graph, const Values& state,
                              int64_t steps) {
  std::vector<TensorType> types = {{DType::kI64, {}}, {DType::kBool, {}}};
  for (const ValueId value : state) types.push_back(op.type(value));
  MENDEL_ASSIGN_OR_RETURN(const ImportedBody imported, op.Body(graph, types));
  if (imported.body.outputs().size() < state.size() + 1)
    return InvalidInput("the body has fewer outputs than states");
  if (!AlwaysTrue(imported.body, imported.body.outputs()[0].value))
    return Unsupported("the body computes its condition");
  return WithoutNumber(op, imported, state.size(), steps).Emit(state);
}

absl::StatusOr<Values> StepByStep(OpContext& op, const onnx::GraphProto& graph, const Values& state,
                                  int64_t steps, std::string why) {
  const ValueId yes = op.Literal(Tensor::Scalar(DType::kBool, 1));
  WrittenLoop loop;
  loop.body = &graph;
  loop.steps = steps;
  loop.why = std::move(why);
  loop.state = state;
  loop.inputs = [&](int64_t k, const Values& now) -> absl::StatusOr<Values> {
    Values inputs = {op.Literal(Tensor::Scalar(DType::kI64, static_cast<double>(k))), yes};
    inputs.insert(inputs.end(), now.begin(), now.end());
    return inputs;
  };
  loop.goes_on = [&](int64_t k, Values& outputs) -> absl::StatusOr<bool> {
    if (outputs.empty()) return InvalidInput("the body has no outputs");
    const Tensor* condition = op.ConstantOf(outputs[0]);
    if (condition == nullptr || condition->size() != 1) {
      return Unsupported("the condition after step ", k,
                         " is known at run time only; loops of unknown length are not supported");
    }
    outputs.erase(outputs.begin());
    return condition->DoubleAt(0) != 0;
  };
  MENDEL_ASSIGN_OR_RETURN(WrittenResults results, WriteSteps(op, loop));
  Values outputs = std::move(results.state);
  for (Values& of_steps : results.scanned) {
    MENDEL_ASSIGN_OR_RETURN(outputs.emplace_back(), Stacked(op, std::move(of_steps), 0));
  }
  return outputs;
}

/// The number of steps; the largest number where only the condition limits them.
absl::StatusOr<int64_t> StepsOf(OpContext& op) {
  if (op.Has(1)) {
    const Tensor* condition = op.ConstantOf(op.In(1));
    if (condition == nullptr || condition->size() != 1) {
      return Unsupported(
          "the condition is known at run time only; loops of unknown length are not supported");
    }
    if (condition->DoubleAt(0) == 0) return 0;
  }
  if (!op.Has(0)) return kMaxLoopSteps;
  return op.ConstantInt(0, "the trip count");
}

absl::Status ImportLoop(OpContext& op) {
  const onnx::GraphProto* graph = op.GraphAttribute("body");
  if (graph == nullptr) return InvalidInput("has no body");
  MENDEL_ASSIGN_OR_RETURN(const int64_t steps, StepsOf(op));
  Values state;
  for (int k = 2; k < op.input_count(); ++k) {
    if (!op.Has(k)) return Unsupported("optional input ", k, " is absent");
    state.push_back(op.In(k));
  }
  if (steps < 1) {
    for (int k = static_cast<int>(state.size()); k < op.node().output_size(); ++k) {
      if (op.Wants(k)) return Unsupported("scanned outputs of a loop without steps");
    }
    return op.SetOutputs(state);
  }
  std::string why = "its condition alone ends it, it has no state or too many steps";
  if (steps > kShortLoop && steps <= kMaxLoopSteps && op.Has(0) && !state.empty()) {
    absl::StatusOr<Values> outputs = AsLoop(op, *graph, state, steps);
    if (outputs.ok()) return op.SetOutputs(*std::move(outputs));
    why = std::string(outputs.status().message());
  }
  return op.SetOutputs(StepByStep(op, *graph, state, steps, std::move(why)));
}

const OpImportRegistrar registrar({
    {"Loop", 0, 1 << 20, &ImportLoop},
});

}  // namespace
}  // namespace mendel::lowerings::loop
