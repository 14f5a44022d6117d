// Loop(carried..., scanned..., invariants...){body, carried, reverse, scanned, steps}: runs a graph
// `steps` times (loop.h). Step k reads slice k of every scanned input along its first dimension and
// writes slice k of every scanned output; with `reverse` slice steps - 1 - k. The outputs are the
// last carried values and the scanned outputs.
//
// The meaning is that of the steps written one after the other.

#include "graph/loop.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <type_traits>
#include <utility>

#include "base/parallel.h"
#include "base/status.h"
#include "graph/fill.h"
#include "graph/grid.h"
#include "graph/loop_samples.h"
#include "graph/op_helpers.h"
#include "graph/rewrite.h"

namespace mendel::ops::loop {
namespace {

template <class S>
FillFunction<S> MeaningIn(const Meaning& meaning) {
  if constexpr (std::is_same_v<S, double>) {
    return meaning.real;
  } else if constexpr (std::is_same_v<S, int64_t>) {
    return meaning.integer;
  } else if constexpr (std::is_same_v<S, Fp>) {
    return meaning.field;
  } else if constexpr (std::is_same_v<S, Ball>) {
    return meaning.ball;
  } else {
    return meaning.extended;
  }
}

/// Steps of less work are done by one thread: starting others would take longer.
constexpr double kParallelFlops = 4e6;

void RunInline(int64_t count, const std::function<void(int64_t)>& body) {
  for (int64_t i = 0; i < count; ++i) body(i);
}

/// The steps of one node over one kind of scalars.
template <class S>
class Steps {
 public:
  Steps(const Reader<S>& in, const NodeView& node)
      : in_(in), attrs_(node.attrs), body_(LoopBodyOf(node.attrs)), arity_(LoopArityOf(node)) {
    values_.resize(body_->nodes().size());
    data_.resize(body_->nodes().size());
    for (size_t i = 0; i < body_->nodes().size(); ++i) Reserve(i);
    operands_.resize(static_cast<size_t>(in.size()));
    for (int k = 0; k < in.size(); ++k)
      whole_.push_back(AllElements(in, k, operands_[static_cast<size_t>(k)]));
    for (size_t c = 0; c < arity_.carried; ++c)
      state_.emplace_back(whole_[c], whole_[c] + CountOf(body_->inputs()[c]));
    next_ = state_;
  }

  void Run(int output, std::span<S> out) {
    const size_t wanted = static_cast<size_t>(output);
    const int64_t steps = attrs_.Int("steps");
    const bool reverse = attrs_.Int("reverse") != 0;
    std::optional<ParallelRunnerScope> one_thread;
    if (RunTimeFlops(*body_) < kParallelFlops) one_thread.emplace(&RunInline);
    for (int64_t k = 0; k < steps; ++k) {
      const int64_t time = LoopTime(steps, reverse, k);
      Step(time);
      if (wanted < arity_.carried) continue;
      const size_t count = out.size() / static_cast<size_t>(steps);
      std::copy_n(Result(wanted), count, out.begin() + time * static_cast<int64_t>(count));
    }
    if (wanted < arity_.carried)
      std::copy(state_[wanted].begin(), state_[wanted].end(), out.begin());
  }

 private:
  int64_t CountOf(int32_t node) const { return NumElements(body_->node(node).outputs[0]); }
  const S* Result(size_t k) const {
    const ValueId value = body_->outputs()[k].value;
    return data_[static_cast<size_t>(value.node)][static_cast<size_t>(value.output)];
  }

  void Reserve(size_t i) {
    const Node& node = body_->nodes()[i];
    data_[i].resize(node.outputs.size());
    if (IsInput(node)) return;
    for (size_t k = 0; k < node.outputs.size(); ++k) {
      values_[i].emplace_back(static_cast<size_t>(NumElements(node.outputs[k])));
      data_[i][k] = values_[i][k].data();
    }
    if (!IsConstant(node)) return;
    const Tensor& tensor = ConstantValue(node);
    for (int64_t e = 0; e < tensor.size(); ++e)
      values_[i][0][static_cast<size_t>(e)] = in_.Literal(tensor.DoubleAt(e));
  }

  void Step(int64_t time) {
    for (size_t k = 0; k < body_->inputs().size(); ++k) {
      const int32_t id = body_->inputs()[k];
      const S*& place = data_[static_cast<size_t>(id)][0];
      if (k < arity_.carried) {
        place = state_[k].data();
      } else {
        place = whole_[k] + (k < arity_.carried + arity_.scanned ? time * CountOf(id) : 0);
      }
    }
    for (size_t i = 0; i < body_->nodes().size(); ++i) Compute(static_cast<int32_t>(i));
    for (size_t c = 0; c < arity_.carried; ++c)
      std::copy_n(Result(c), state_[c].size(), next_[c].begin());
    state_.swap(next_);
  }

  void Compute(int32_t id) {
    const Node& node = body_->node(id);
    if (IsInput(node) || IsConstant(node)) return;
    const std::vector<TensorType> types = body_->InputTypes(id);
    std::vector<Operand<S>> operands;
    for (size_t k = 0; k < types.size(); ++k) {
      const ValueId value = node.inputs[k];
      Operand<S>& operand = operands.emplace_back();
      operand.type = &types[k];
      operand.scalars = data_[static_cast<size_t>(value.node)][static_cast<size_t>(value.output)];
    }
    const Reader<S> in(in_.arithmetic(), operands);
    for (size_t k = 0; k < node.outputs.size(); ++k) {
      MeaningIn<S>(node.op->meaning)(in, NodeView{types, node.attrs, node.outputs},
                                     static_cast<int>(k), values_[static_cast<size_t>(id)][k]);
    }
  }

  const Reader<S>& in_;
  const Attributes& attrs_;
  const std::shared_ptr<const Graph> body_;
  const LoopArity arity_;
  std::vector<std::vector<std::vector<S>>> values_;  ///< of nodes that compute
  std::vector<std::vector<const S*>> data_;          ///< of all values in this step
  std::vector<std::vector<S>> operands_;
  std::vector<const S*> whole_;
  std::vector<std::vector<S>> state_, next_;
};

struct LoopMeaning {
  template <class S>
  static void Fill(const Reader<S>& in, const NodeView& node, int output, std::span<S> out) {
    Steps<S>(in, node).Run(output, out);
  }
};

Shape Slice(const Shape& shape) { return Shape(shape.begin() + 1, shape.end()); }

absl::Status CheckInputs(std::span<const TensorType> inputs, const Graph& body, size_t carried,
                         size_t scanned, int64_t steps) {
  for (size_t k = 0; k < inputs.size(); ++k) {
    TensorType slice = inputs[k];
    if (k >= carried && k < carried + scanned) {
      if (slice.shape.empty() || slice.shape[0] != steps)
        return InvalidInput("scanned input ", k, " has not ", steps, " slices");
      slice.shape = Slice(slice.shape);
    }
    if (slice != body.node(body.inputs()[k]).outputs[0]) {
      return InvalidInput("input ", k, " of the loop's body is not ", TypeString(slice));
    }
  }
  return absl::OkStatus();
}

TypesOr Infer(std::span<const TensorType> inputs, const Attributes& attrs) {
  const int64_t steps = attrs.Int("steps");
  const int64_t carried = attrs.Int("carried");
  const int64_t scanned = attrs.Int("scanned");
  const int64_t count = static_cast<int64_t>(inputs.size());
  if (steps < 1 || steps > kMaxLoopSteps)
    return InvalidInput("a loop has 1 to ", kMaxLoopSteps, " steps, not ", steps);
  if (carried < 1 || carried > count || scanned < 0 || scanned > count - carried)
    return InvalidInput("a loop of ", count, " inputs cannot have ", carried, " carried and ",
                        scanned, " scanned ones");
  if (attrs.Int("reverse") != 0 && attrs.Int("reverse") != 1)
    return InvalidInput("reverse is 0 or 1, not ", attrs.Int("reverse"));
  MENDEL_ASSIGN_OR_RETURN(const std::shared_ptr<const Graph> body,
                          ParseLoopBody(attrs.Str("body")));
  if (body->inputs().size() != inputs.size()) {
    return InvalidInput("the loop's body has ", body->inputs().size(), " inputs, not ", count);
  }
  if (static_cast<int64_t>(body->outputs().size()) < carried)
    return InvalidInput("the loop's body has fewer outputs than carried values");
  const size_t kept = static_cast<size_t>(carried);
  MENDEL_RETURN_IF_ERROR(CheckInputs(inputs, *body, kept, static_cast<size_t>(scanned), steps));
  std::vector<TensorType> outputs;
  for (size_t k = 0; k < body->outputs().size(); ++k) {
    TensorType type = body->type(body->outputs()[k].value);
    if (k < kept && type != inputs[k])
      return InvalidInput("carried value ", k, " becomes ", TypeString(type));
    if (k >= kept) type.shape.insert(type.shape.begin(), steps);
    outputs.push_back(std::move(type));
  }
  return outputs;
}

/// The bound of every element of one output of a node of a body.
Bound BoundOfBodyNode(const Graph& body, int32_t id, std::span<const Bound> inputs, int output,
                      const Arithmetic<Bound>& arithmetic) {
  const Node& node = body.node(id);
  std::vector<TensorType> types = body.InputTypes(id);
  if (node.op->bound != nullptr)
    return node.op->bound({types, node.attrs, node.outputs}, inputs, output, arithmetic);
  // Elementwise: cut to one element.
  std::vector<Operand<Bound>> operands;
  for (size_t k = 0; k < types.size(); ++k) {
    std::fill(types[k].shape.begin(), types[k].shape.end(), 1);
    Operand<Bound>& operand = operands.emplace_back();
    operand.type = &types[k];
    operand.scalars = &inputs[k];
  }
  std::vector<TensorType> outputs = node.outputs;
  for (TensorType& type : outputs) std::fill(type.shape.begin(), type.shape.end(), 1);
  return node.op->meaning.bound(Reader<Bound>(arithmetic, operands), {types, node.attrs, outputs},
                                output);
}

/// Operands of all oracle calls of one output of a body's node, where each element has `each`.
double OperandsOf(const Graph& body, int32_t id, size_t output, double each) {
  const Node& node = body.node(id);
  if (node.op->shared_operands != nullptr) return WithView(body, id, node.op->shared_operands);
  return each * static_cast<double>(NumElements(node.outputs[output]));
}

/// Bounds of a body's values from those of its inputs, step by step.
class BodyBounds {
 public:
  BodyBounds(const Graph& body, const Arithmetic<Bound>& arithmetic)
      : body_(body), arithmetic_(arithmetic), values_(body.nodes().size()) {
    for (size_t i = 0; i < values_.size(); ++i) {
      const Node& node = body.nodes()[i];
      values_[i].resize(node.outputs.size());
      if (!IsConstant(node)) continue;
      const Tensor& tensor = ConstantValue(node);
      for (int64_t e = 0; e < tensor.size(); ++e)
        values_[i][0] = Either(values_[i][0], arithmetic.Literal(tensor.DoubleAt(e)));
    }
  }

  void Step(std::span<const Bound> inputs) {
    for (size_t k = 0; k < inputs.size(); ++k)
      values_[static_cast<size_t>(body_.inputs()[k])][0] = inputs[k];
    for (size_t i = 0; i < values_.size(); ++i) {
      const Node& node = body_.nodes()[i];
      if (IsInput(node) || IsConstant(node)) continue;
      std::vector<Bound> operands;
      for (const ValueId value : node.inputs) operands.push_back(Of(value));
      for (size_t k = 0; k < node.outputs.size(); ++k)
        Compute(static_cast<int32_t>(i), k, operands);
    }
  }

  const Bound& Of(ValueId value) const {
    return values_[static_cast<size_t>(value.node)][static_cast<size_t>(value.output)];
  }
  /// A bound on the degrees of all denominators so far.
  double denominators() const { return denominators_; }

 private:
  void Compute(int32_t id, size_t output, std::span<const Bound> operands) {
    const Arithmetic<Bound> inner;
    Bound& bound = values_[static_cast<size_t>(id)][output];
    bound = BoundOfBodyNode(body_, id, operands, static_cast<int>(output), inner);
    const double count = OperandsOf(body_, id, output, inner.operand_count());
    arithmetic_.CountOperands(count, inner.worst_operand());
    denominators_ +=
        static_cast<double>(NumElements(body_.node(id).outputs[output])) * bound.den_degree +
        count * inner.worst_operand().den_degree;
  }

  const Graph& body_;
  const Arithmetic<Bound>& arithmetic_;
  std::vector<std::vector<Bound>> values_;
  double denominators_ = 0;
};

/// The worst bound of all steps. Denominators within the body count as the output's.
Bound BoundOfLoop(const NodeView& node, std::span<const Bound> inputs, int output,
                  const Arithmetic<Bound>& arithmetic) {
  const std::shared_ptr<const Graph> body = LoopBodyOf(node.attrs);
  const size_t carried = LoopArityOf(node).carried;
  BodyBounds bounds(*body, arithmetic);
  std::vector<Bound> operands(inputs.begin(), inputs.end());
  Bound worst;
  for (int64_t k = node.attrs.Int("steps"); k > 0; --k) {
    bounds.Step(operands);
    worst = Either(worst, bounds.Of(body->outputs()[static_cast<size_t>(output)].value));
    for (size_t c = 0; c < carried; ++c) operands[c] = bounds.Of(body->outputs()[c].value);
  }
  worst.den_degree += bounds.denominators();
  return worst;
}

double OperandsOfLoop(const NodeView& node) {
  const std::shared_ptr<const Graph> body = LoopBodyOf(node.attrs);
  double count = 0;
  for (size_t i = 0; i < body->nodes().size(); ++i) {
    const Node& inner = body->nodes()[i];
    if (IsInput(inner) || IsConstant(inner)) continue;
    const std::vector<Bound> operands(inner.inputs.size(), Bound::Symbol());
    const int32_t id = static_cast<int32_t>(i);
    for (size_t k = 0; k < inner.outputs.size(); ++k) {
      const Arithmetic<Bound> arithmetic;
      BoundOfBodyNode(*body, id, operands, static_cast<int>(k), arithmetic);
      count += OperandsOf(*body, id, k, arithmetic.operand_count());
    }
  }
  return count * static_cast<double>(node.attrs.Int("steps"));
}

/// Scanned outputs of some steps need no step after the last of them.
std::optional<OutputsRestriction> RestrictLoop(const NodeView& node,
                                               std::span<const std::optional<Box>> wanted) {
  const LoopArity arity = LoopArityOf(node);
  const int64_t steps = node.attrs.Int("steps");
  int64_t begin = steps, end = 0;  // slices
  for (size_t k = 0; k < wanted.size(); ++k) {
    if (!wanted[k].has_value()) continue;
    if (k < arity.carried) return std::nullopt;
    begin = std::min(begin, wanted[k]->begin[0]);
    end = std::max(end, wanted[k]->end[0]);
  }
  const bool reverse = node.attrs.Int("reverse") != 0;
  if (!reverse) begin = 0;
  if (reverse) end = steps;
  if (begin >= end || end - begin == steps) return std::nullopt;
  OutputsRestriction restriction;
  for (size_t k = 0; k < node.inputs.size(); ++k) {
    Box& box = restriction.inputs.emplace_back(Box::Whole(node.inputs[k].shape));
    if (k < arity.carried || k >= arity.carried + arity.scanned) continue;
    box.begin[0] = begin;
    box.end[0] = end;
  }
  for (size_t k = 0; k < node.outputs.size(); ++k) {
    Box& box = restriction.outputs.emplace_back(Box::Whole(node.outputs[k].shape));
    if (k < arity.carried) continue;
    box.begin[0] = begin;
    box.end[0] = end;
  }
  restriction.attrs = node.attrs;
  restriction.attrs.Set("steps", end - begin);
  return restriction;
}

/// The same for the positions of one output.
std::optional<GridRestriction> RestrictGrid(const GridRequest& request) {
  const size_t output = static_cast<size_t>(request.output);
  std::vector<std::optional<Box>> wanted(request.node.outputs.size());
  Box box = Box::Whole(request.node.outputs[output].shape);
  if (box.begin.empty()) return std::nullopt;
  const Positions& positions = request.wanted[0];
  box.begin[0] = positions[0];
  box.end[0] = positions[positions.size() - 1] + 1;
  wanted[output] = box;
  const std::optional<OutputsRestriction> boxes = RestrictLoop(request.node, wanted);
  if (!boxes.has_value()) return std::nullopt;
  GridRestriction result;
  result.computed = GridOf(boxes->outputs[output]);
  for (const Box& input : boxes->inputs) result.inputs.push_back(GridOf(input));
  result.attrs = boxes->attrs;
  result.output = request.output;
  return result;
}

Cost CostOfLoop(const NodeView& node) {
  Cost cost;
  cost.flops = RunTimeFlops(*LoopBodyOf(node.attrs)) * static_cast<double>(node.attrs.Int("steps"));
  for (const TensorType& type : node.inputs) cost.bytes += static_cast<double>(ByteSize(type));
  for (const TensorType& type : node.outputs) cost.bytes += static_cast<double>(ByteSize(type));
  return cost;
}

OpDefinition Make() {
  OpDefinition op;
  op.name = "Loop";
  op.min_inputs = 1;
  op.max_inputs = kVariadic;
  op.attributes = {{"body", std::string(), true},
                   {"carried", int64_t{0}, true},
                   {"reverse", int64_t{0}},
                   {"scanned", int64_t{0}, true},
                   {"steps", int64_t{0}, true}};
  op.infer = &Infer;
  op.meaning = MeaningOf<LoopMeaning>();
  op.bound = &BoundOfLoop;
  op.shared_operands = &OperandsOfLoop;
  op.restrict_outputs = &RestrictLoop;
  op.cost = &CostOfLoop;
  op.sample = &SampleLoop;
  return op;
}

MENDEL_REGISTER_OP(&Make);
MENDEL_REGISTER_GRID_STRUCTURE({.op = "Loop", .restrict = &RestrictGrid});

}  // namespace
}  // namespace mendel::ops::loop
